/**
 * One credit over many connections.
 *
 * Shares are given out anew when the credit changes, when a connection comes or goes, and at every tick: then whoever
 * could not be heard has its turn, and the credit goes where messages are.
 */
import { allot } from "./distributeRdy.ts"

/** What a connection tells. */
export interface Handle {
  readonly arrived: () => void
  readonly settled: () => void
  /** The connection is gone, and somebody still works at what it delivered. */
  readonly lost: () => void
  /** Nobody does any more. */
  readonly leave: () => void
}

export interface Credit {
  readonly set: (limit: number) => void
  /** `rdy` writes the share; `max` is the highest that nsqd takes. */
  readonly join: (rdy: (share: number) => void, max: number) => Handle
  readonly tick: () => void
}

interface Member {
  readonly rdy: (share: number) => void
  readonly max: number
  isLost: boolean
  inFlight: number
  share: number
  /** Since the last tick. */
  arrivals: number
  /** Ticks in a row without a message, and without room for one. */
  waited: number
  /** Ticks in a row for which it kept its turn though others waited. */
  kept: number
}

/** Ticks for which a connection that delivers keeps its turn, while others hold nothing and wait. */
const quantum = 4

/** Holds nothing, and has waited for its turn for too long. */
const isStarved = ({ inFlight, share, waited }: Member): boolean => inFlight === 0 && share === 0 && waited >= quantum

const hasRoom = ({ inFlight, share }: Member): boolean => share > inFlight

export const make = (): Credit => {
  const members = new Set<Member>()
  let limit = 0
  /** What is taken back of the credit as soon as something is settled, for a connection that holds nothing. */
  let owed = 0
  /** Something is to be given out as soon as something is settled. */
  let isShort = false

  const apply = (): void => {
    const living = [...members].filter(({ isLost }) => !isLost)
    const lost = [...members].reduce((sum, { inFlight, isLost }) => sum + (isLost ? inFlight : 0), 0)
    const free = Math.max(0, limit - lost)
    const shares = allot(
      Math.max(0, free - owed),
      living.map((member) => ({ ...member, isBusy: member.arrivals > 0 || member.inFlight > 0 }))
    )
    isShort = shares.reduce((sum, share) => sum + share, 0) < free
    const changes = living.map((member, index) => ({
      member,
      share: shares[index]!,
      by: shares[index]! - member.share
    }))
    // Taken away before it is given to others.
    for (const { by, member, share } of changes.toSorted((a, b) => a.by - b.by)) {
      if (by === 0) continue
      member.share = share
      member.rdy(share)
    }
  }

  const turn = (member: Member, isContended: boolean): void => {
    if (!hasRoom(member)) {
      member.waited = member.arrivals > 0 ? 0 : member.waited + 1
      member.kept = 0
      return
    }
    const keeps = isContended && member.arrivals > 0 && member.kept < quantum
    member.kept = keeps ? member.kept + 1 : 0
    member.waited = keeps ? Number.POSITIVE_INFINITY : 0
  }

  return {
    set: (wanted) => {
      limit = wanted
      owed = 0
      apply()
    },
    join: (rdy, max) => {
      const member: Member = { rdy, max, isLost: false, inFlight: 0, share: 0, arrivals: 0, waited: 0, kept: 0 }
      members.add(member)
      apply()
      return {
        arrived: () => {
          member.inFlight++
          member.arrivals++
        },
        settled: () => {
          member.inFlight--
          if (member.isLost && member.inFlight === 0) members.delete(member)
          if (!member.isLost && !isShort) return
          owed = 0
          apply()
        },
        lost: () => {
          member.isLost = true
          if (member.inFlight === 0) members.delete(member)
          apply()
        },
        leave: () => {
          members.delete(member)
          apply()
        }
      }
    },
    tick: () => {
      const living = [...members].filter(({ isLost }) => !isLost)
      if (limit === 0 || living.length < 2) return
      const isContended = living.some((member) => !hasRoom(member))
      for (const member of living) turn(member, isContended)
      const isFull = [...members].reduce((sum, { inFlight }) => sum + inFlight, 0) >= limit
      owed = isFull && living.some(isStarved) ? 1 : 0
      apply()
      for (const member of living) member.arrivals = 0
    }
  }
}
