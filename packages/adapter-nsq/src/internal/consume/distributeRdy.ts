/**
 * Computes each connection's `RDY`: how many messages it may have in flight. Pure.
 *
 * Messages in flight and messages that may still arrive never exceed the credit in total. Free credit goes first, one
 * each, to the connections that have waited longest. The rest is split evenly among connections with messages. While
 * such a connection can use more, only one of the others gets credit.
 */

/** A connection that needs a share of the credit. */
export interface Demand {
  readonly inFlight: number
  /** Whether it has delivered recently. */
  readonly isBusy: boolean
  /** How long it could not receive messages, in any unit: the longest comes first. */
  readonly waited: number
  /** The highest `RDY` that its nsqd accepts. */
  readonly max: number
}

/**
 * Returns the `RDY` of each connection, in order. All are 0 while more messages are in flight than the credit allows.
 * `isSaturated`: a connection with messages can use more credit.
 */
export const distributeRdy = (
  credit: number,
  demands: ReadonlyArray<Demand>,
  isSaturated = false
): ReadonlyArray<number> => {
  const held = demands.reduce((sum, { inFlight }) => sum + inFlight, 0)
  // nsqd sends a message after each settlement while fewer than RDY are in flight: first the credit must suffice.
  if (demands.length === 0 || held > credit) return demands.map(() => 0)
  const shares = demands.map(({ inFlight }) => inFlight)
  let free = credit - held
  const byNeed = [...demands.keys()].toSorted((a, b) => need(demands[b]!, demands[a]!))
  const busy = byNeed.filter((index) => demands[index]!.isBusy)
  const heard = byNeed.find((index) => !demands[index]!.isBusy)
  const first = isSaturated ? byNeed.filter((index) => index === heard || demands[index]!.isBusy) : byNeed
  for (const index of first.slice(0, free)) {
    shares[index]!++
    free--
  }
  fill(shares, busy.length === 0 ? byNeed : busy, free)
  return shares.map((share, index) => Math.min(share, demands[index]!.max))
}

/** Returns more than 0 if `a` comes before `b`: it has waited longer, or equally long and is busy. */
const need = (a: Demand, b: Demand): number =>
  a.waited === b.waited ? Number(a.isBusy) - Number(b.isBusy) : a.waited - b.waited

/** Raises the lowest shares first, until the amount is used up. */
const fill = (shares: Array<number>, among: ReadonlyArray<number>, amount: number): void => {
  let left = amount
  while (left > 0) {
    const lowest = Math.min(...among.map((index) => shares[index]!))
    const low = among.filter((index) => shares[index] === lowest)
    const next = Math.min(...among.map((index) => shares[index]!).filter((share) => share > lowest))
    const step = Math.max(1, Math.min(next - lowest, Math.floor(left / low.length)))
    for (const index of low.slice(0, left)) {
      shares[index]! += step
      left -= step
    }
  }
}
