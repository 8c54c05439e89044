/**
 * One credit over many connections.
 *
 * It is distributed anew when it changes, when a connection joins or leaves, and at every tick. A tick gives a turn to
 * connections that could not receive messages, and moves the credit to connections that have some.
 */
import { distributeRdy } from "./distributeRdy.ts"

/** A connection's part in the credit. */
export interface Membership {
  /** Counts a delivery that has arrived. */
  readonly arrived: () => void
  /** Counts a delivery that is settled. */
  readonly settled: () => void
  /** Ends its share because the connection has closed. Its deliveries count until they are settled. */
  readonly lost: () => void
  /** Ends its share; its deliveries count no more. */
  readonly leave: () => void
}

export interface Credit {
  /** Sets how many messages may be in flight on all connections together. */
  readonly set: (limit: number) => void
  /** Adds a connection. `rdy` writes its share; `max` is the highest that its nsqd accepts. */
  readonly join: (rdy: (share: number) => void, max: number) => Membership
  /** Gives the next connections their turn. To be called at regular intervals. */
  readonly tick: () => void
}

/** A connection that has joined. */
interface Member {
  readonly rdy: (share: number) => void
  readonly max: number
  isLost: boolean
  inFlight: number
  share: number
  /** Deliveries since the last tick. */
  arrivals: number
  /** Ticks in a row without a message, and without room for one. */
  waited: number
  /** Ticks in a row for which it kept its turn though others waited. */
  kept: number
}

/** Ticks for which a connection that delivers keeps its turn, while others hold nothing and wait. */
const quantum = 4

/** Whether it has nothing in flight, and has waited too long for its turn. */
const isStarved = ({ inFlight, share, waited }: Member): boolean => inFlight === 0 && share === 0 && waited >= quantum

const hasRoom = ({ inFlight, share }: Member): boolean => share > inFlight

/** Counts for how long a member waits, or keeps its turn while others wait. */
const countTick = (member: Member, isContended: boolean): void => {
  if (!hasRoom(member)) {
    member.waited = member.arrivals > 0 ? 0 : member.waited + 1
    member.kept = 0
    return
  }
  const keeps = isContended && member.arrivals > 0 && member.kept < quantum
  member.kept = keeps ? member.kept + 1 : 0
  member.waited = keeps ? Number.POSITIVE_INFINITY : 0
}

const sumOf = (members: ReadonlyArray<Member>): number => members.reduce((sum, { inFlight }) => sum + inFlight, 0)

/** A credit of 0, and no connections. */
export const make = (): Credit => {
  const members = new Set<Member>()
  let limit = 0
  /** Credit that is withheld until the next settlement, which then goes to a connection that is starved. */
  let withheld = 0
  /** Whether some of the credit could not be distributed, so that it is distributed anew at the next settlement. */
  let isShort = false

  const living = (): ReadonlyArray<Member> => [...members].filter(({ isLost }) => !isLost)

  const distribute = (): void => {
    const all = living()
    const free = Math.max(0, limit - sumOf([...members].filter(({ isLost }) => isLost)))
    const shares = distributeRdy(
      Math.max(0, free - withheld),
      all.map((member) => ({ ...member, isBusy: member.arrivals > 0 || member.inFlight > 0 }))
    )
    isShort = shares.reduce((sum, share) => sum + share, 0) < free
    const changes = all.map((member, index) => ({
      member,
      share: shares[index]!,
      by: shares[index]! - member.share
    }))
    // Shares are lowered before others are raised, so that their sum never exceeds the credit.
    for (const { by, member, share } of changes.toSorted((a, b) => a.by - b.by)) {
      if (by === 0) continue
      member.share = share
      member.rdy(share)
    }
  }

  return {
    set: (wanted) => {
      if (wanted === limit) return
      limit = wanted
      withheld = 0
      distribute()
    },
    join: (rdy, max) => {
      const member: Member = { rdy, max, isLost: false, inFlight: 0, share: 0, arrivals: 0, waited: 0, kept: 0 }
      members.add(member)
      distribute()
      return {
        arrived: () => {
          member.inFlight++
          member.arrivals++
        },
        settled: () => {
          member.inFlight--
          if (member.isLost && member.inFlight === 0) members.delete(member)
          if (!member.isLost && !isShort) return
          withheld = 0
          distribute()
        },
        lost: () => {
          member.isLost = true
          if (member.inFlight === 0) members.delete(member)
          distribute()
        },
        leave: () => {
          members.delete(member)
          distribute()
        }
      }
    },
    tick: () => {
      const all = living()
      if (limit === 0 || all.length < 2) return
      const isContended = all.some((member) => !hasRoom(member))
      for (const member of all) countTick(member, isContended)
      const isFull = sumOf([...members]) >= limit
      withheld = isFull && all.some(isStarved) ? 1 : 0
      distribute()
      for (const member of all) member.arrivals = 0
    }
  }
}
