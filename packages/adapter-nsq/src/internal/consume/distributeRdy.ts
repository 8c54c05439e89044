/**
 * How many messages each connection may have in flight: its `RDY`. Pure.
 *
 * Messages in flight and messages that may still come are together never more than the credit. Free credit goes first to
 * as many connections as it suffices for, one each, beginning with those that have waited longest. The rest is split
 * evenly among the connections that have messages. While any of these has use for more, only one of the others is heard.
 */

/** A connection that wants a share of the credit. */
export interface Demand {
  readonly inFlight: number
  /** Whether it has delivered lately. */
  readonly isBusy: boolean
  /** How long it could not receive messages. The unit does not matter: the longest comes first. */
  readonly waited: number
  /** The highest `RDY` that its nsqd accepts. */
  readonly max: number
}

/**
 * The `RDY` of each connection, in their order. All are 0 while more is in flight than the credit. `isSaturated`: a connection
 * that has messages has use for more credit.
 */
export const distributeRdy = (
  credit: number,
  demands: ReadonlyArray<Demand>,
  isSaturated = false
): ReadonlyArray<number> => {
  const held = demands.reduce((sum, { inFlight }) => sum + inFlight, 0)
  // nsqd sends again after each settlement while less is in flight than RDY: first one must come below the credit.
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

/** Greater than 0 when `a` comes before `b`: because it has waited longer, or as long and is busy. */
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
