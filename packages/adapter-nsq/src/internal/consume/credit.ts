/**
 * One credit over many connections.
 *
 * It is distributed anew when it changes, when a connection joins or leaves, and at every tick. While there are fewer
 * credits than connections, a credit goes on from a connection that has no message: it stays for one turn, which is as
 * short as all of them can be heard within a round, and not shorter than the way to nsqd and back. nsqd answers no `RDY`,
 * so that a credit which moves on sooner would be used twice.
 *
 * While a connection uses up what it has, those without messages are heard in turn as well, one at a time, however much
 * credit there is: what they do not use is where the work is. Where even the last credit is taken from the work to hear
 * the others, turns are as short as the way allows.
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
  /** Gives the next connections their turn. */
  readonly tick: () => void
  /** Milliseconds until the next tick. */
  readonly pause: () => number
}

/** A connection that has joined. Times are monotonic milliseconds. */
interface Member {
  readonly rdy: (share: number) => void
  readonly max: number
  isLost: boolean
  inFlight: number
  share: number
  /** When its share was changed. */
  changed: number
  /** When it got room for a message. */
  roomSince: number
  /** When its last message came. */
  arrived: number
  /** Since when it has no message, and no room for one. */
  waitsSince: number
  /** When its turn began. */
  turnSince: number
  /** When its last turn ended. */
  turnEnded: number
}

/** Milliseconds; see {@link Credit}. */
const times = {
  /** In which each connection has its turn while there are no messages. */
  round: 36,
  shortestTurn: 1,
  /** Also the pause between ticks while there is no need for turns. */
  longestTurn: 50,
  /** In which nsqd fills the room that a settlement has made, unless the way to it is longer. */
  moment: 10,
  /** For which a connection that delivers keeps its turn, while others hold nothing and wait. */
  quantum: 500
}

/** How much of a turn must have passed, since a timer rounds its time down. */
const most = 0.7

const hasRoom = ({ inFlight, share }: Member): boolean => share > inFlight

const sumOf = (members: Iterable<Member>): number => [...members].reduce((sum, { inFlight }) => sum + inFlight, 0)

/**
 * How long it waits for its turn, whose length is in milliseconds. Who keeps its turn comes first, since it may have
 * further messages.
 */
const waitOf = (member: Member, now: number, turn: number): number => {
  const { roomSince, turnSince, waitsSince } = member
  if (!hasRoom(member)) return now - waitsSince
  const isKept = now - roomSince < most * turn && now - turnSince < times.quantum
  return isKept ? Number.POSITIVE_INFINITY : 0
}

const isBusy = ({ arrived, inFlight }: Member, now: number): boolean =>
  inFlight > 0 || now - arrived < times.longestTurn

/**
 * Whether it has used up all the room that it was given, so that it may have further messages. What is settled makes room
 * that nsqd fills a moment later.
 */
const isSaturated = (member: Member, now: number, moment: number): boolean =>
  isBusy(member, now) && (hasRoom(member) ? now - member.roomSince < moment : member.arrived >= member.changed)

/** Whether it has delivered a moment ago, and must wait while others are heard. */
const isDeprived = ({ arrived, inFlight, share }: Member, now: number): boolean =>
  inFlight === 0 && share === 0 && now - arrived < times.longestTurn

const isStarved = ({ inFlight, share, waitsSince }: Member, now: number): boolean =>
  inFlight === 0 && share === 0 && now - waitsSince >= times.quantum

const give = (member: Member, share: number, now: number): void => {
  const had = hasRoom(member)
  member.share = share
  member.changed = now
  if (!had) member.roomSince = member.turnSince = now
  else if (!hasRoom(member)) member.waitsSince = member.turnEnded = now
  member.rdy(share)
}

/**
 * How long the way to nsqd and back takes, by a message that has just arrived. One that arrives after its turn was under way
 * since the end of the turn, unless nsqd sent it in the place of one that it took back: so this may be far too long. One for
 * which there is room was under way for no longer than there is room, unless nsqd sent it before an earlier turn ended.
 */
const learned = (latency: number, { changed, inFlight, roomSince, share, turnEnded }: Member, now: number): number => {
  if (inFlight > share) return Math.max(latency, now - changed)
  return roomSince - turnEnded < Math.min(latency, times.longestTurn) ? latency : Math.min(latency, now - roomSince)
}

/**
 * A credit of 0, and no connections. `elapsed` answers monotonic milliseconds.
 *
 * Long, because all that happens to a connection changes what others have.
 */
export const make = (elapsed: () => number): Credit => {
  const members = new Set<Member>()
  let limit = 0
  /** Whether some of the credit could not be distributed, so that it is distributed anew at the next settlement. */
  let isShort = false
  /** The way to nsqd and back, as far as it is known, in milliseconds. */
  let latency = 0

  const living = (): ReadonlyArray<Member> => [...members].filter(({ isLost }) => !isLost)

  const isAnySaturated = (now: number): boolean => {
    const moment = Math.max(times.moment, 2 * latency)
    return living().some((member) => isSaturated(member, now, moment))
  }

  const turn = (): number => {
    const now = elapsed()
    const all = living()
    const isHurried = isAnySaturated(now)
    if (limit === 0 || (limit >= all.length && !isHurried)) return times.longestTurn
    const free = isHurried ? 1 : Math.max(1, limit - sumOf(members))
    const round = all.some((member) => isDeprived(member, now)) ? 0 : times.round
    const wanted = Math.max((round * free) / all.length, 2 * latency, times.shortestTurn)
    return Math.min(wanted, times.longestTurn)
  }

  /** `withheld` is credit that waits for the next settlement, and then goes to a connection that is starved. */
  const distribute = (withheld = 0): void => {
    const now = elapsed()
    const length = turn()
    const all = living()
    const free = Math.max(0, limit - sumOf([...members].filter(({ isLost }) => isLost)))
    const shares = distributeRdy(
      Math.max(0, free - withheld),
      all.map((member) => {
        const { inFlight, max } = member
        return { inFlight, isBusy: isBusy(member, now), max, waited: waitOf(member, now, length) }
      }),
      isAnySaturated(now)
    )
    isShort = shares.reduce((sum, share) => sum + share, 0) < free
    const changes = all.map((member, index) => ({ member, share: shares[index]!, by: shares[index]! - member.share }))
    // Shares are lowered before others are raised, so that their sum never exceeds the credit.
    for (const { by, member, share } of changes.toSorted((a, b) => a.by - b.by)) {
      if (by !== 0) give(member, share, now)
    }
  }

  const membershipOf = (member: Member): Membership => ({
    arrived: () => {
      const now = elapsed()
      member.inFlight++
      member.arrived = member.waitsSince = now
      if (!member.isLost) latency = learned(latency, member, now)
      // It came when its turn was over, and takes what another one has by now.
      if (member.isLost) members.add(member)
      if (member.inFlight > member.share) distribute()
    },
    settled: () => {
      const had = hasRoom(member)
      member.inFlight--
      if (!had) member.roomSince = elapsed()
      if (member.isLost && member.inFlight === 0) members.delete(member)
      if (member.isLost || isShort) distribute()
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
  })

  return {
    set: (wanted) => {
      if (wanted === limit) return
      limit = wanted
      distribute()
    },
    join: (rdy, max) => {
      const now = elapsed()
      const since = { changed: now, roomSince: now, waitsSince: now, turnSince: now, turnEnded: -Infinity }
      const member: Member = { rdy, max, isLost: false, inFlight: 0, share: 0, arrived: -times.longestTurn, ...since }
      members.add(member)
      distribute()
      return membershipOf(member)
    },
    tick: () => {
      const now = elapsed()
      const all = living()
      if (limit === 0 || all.length < 2) return
      distribute(sumOf(members) >= limit && all.some((member) => isStarved(member, now)) ? 1 : 0)
    },
    pause: turn
  }
}
