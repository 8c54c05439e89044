/**
 * Which connection may have how many messages in flight: its `RDY`. Pure.
 *
 * What is in flight plus what may still be pushed never exceeds the credit. What is free is given out so that every
 * connection can be heard, those first that have waited longest; the rest goes to those that have something to deliver,
 * evenly.
 */

export interface Member {
  readonly inFlight: number
  /** Whether it has delivered lately. */
  readonly isBusy: boolean
  /** How long it could not push anything; the longest is first. */
  readonly waited: number
  /** The highest `RDY` that its nsqd takes. */
  readonly max: number
}

export const allot = (credit: number, members: ReadonlyArray<Member>): ReadonlyArray<number> => {
  const held = members.reduce((sum, { inFlight }) => sum + inFlight, 0)
  // Whoever settles next must not push again: one has to come below the credit first.
  if (members.length === 0 || held > credit) return members.map(() => 0)
  const shares = members.map(({ inFlight }) => inFlight)
  let free = credit - held
  const byNeed = [...members.keys()].toSorted((a, b) => need(members[b]!, members[a]!))
  for (const index of byNeed.slice(0, free)) {
    shares[index]!++
    free--
  }
  const busy = byNeed.filter((index) => members[index]!.isBusy)
  fill(shares, busy.length === 0 ? byNeed : busy, free)
  return shares.map((share, index) => Math.min(share, members[index]!.max))
}

/** Who has waited longer comes first, and who is busy before who is not. */
const need = (a: Member, b: Member): number =>
  a.waited === b.waited ? Number(a.isBusy) - Number(b.isBusy) : a.waited - b.waited

/** Raises the lowest shares first, until nothing is left. */
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
