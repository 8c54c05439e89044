/**
 * Distributes one credit over many connections.
 *
 * The credit is redistributed when it changes, when a connection joins or leaves, and at every tick. With fewer credits
 * than connections, a credit moves on from connections that have no message. It stays for one turn: short enough to
 * serve all connections within a round, but not shorter than the round trip to nsqd. nsqd does not answer `RDY`, so a
 * credit that moved on sooner could be used twice.
 *
 * While a connection uses all of its share, connections without messages also get turns, one at a time, whatever the
 * credit: messages may wait there. If this takes the last credit from a busy connection, turns are as short as the
 * round trip allows.
 *
 * There are no ticks while they would change nothing: an idle consumer, or one whose handlers have all of the credit, does
 * not wake up.
 */
import type { Timers } from "@requeue/core/port"
import { distributeRdy } from "./distributeRdy.ts"

/** A connection's membership in the credit. */
export interface Membership {
  /** Counts a delivery that has arrived. */
  readonly arrived: () => void
  /** Counts a delivery that is settled. */
  readonly settled: () => void
  /** Ends its share because the connection has closed. Its deliveries still count until they are settled. */
  readonly lost: () => void
  /** Ends its share. Its deliveries no longer count. */
  readonly leave: () => void
}

export interface Credit {
  /** Sets how many messages may be in flight on all connections in total. */
  readonly set: (limit: number) => void
  /** Adds a connection. `rdy` writes its share; `max` is the highest that its nsqd accepts. */
  readonly join: (rdy: (share: number) => void, max: number) => Membership
  /** Moves the credit to the next connections. */
  readonly tick: () => void
  /** Milliseconds until the next tick; infinity if only what happens to messages or connections can make one useful. */
  readonly pause: () => number
}

/** A connection that has joined. Times are monotonic milliseconds. */
interface Member {
  readonly rdy: (share: number) => void
  readonly max: number
  readonly joined: number
  isLost: boolean
  inFlight: number
  share: number
  /** When its share last changed. */
  changed: number
  /** When it got room for a message. */
  roomSince: number
  /** When its last message arrived. */
  arrived: number
  /** When its turn began. */
  turnSince: number
  /** When its last turn ended. */
  turnEnded: number
}

/** Milliseconds; see {@link Credit}. */
const times = {
  /** Each connection gets a turn within this time while there are no messages. */
  round: 36,
  shortestTurn: 1,
  /** Also the pause between ticks while turns are not needed. */
  longestTurn: 50,
  /** How long nsqd takes to fill the room after a settlement, unless the round trip is longer. */
  moment: 10,
  /** How long a delivering connection keeps its turn while connections without messages wait. */
  quantum: 500
}

/** The part of a turn that must have passed: timers round their time down. */
const most = 0.7

const hasRoom = ({ inFlight, share }: Member): boolean => share > inFlight

const sumOf = (members: Iterable<Member>): number => [...members].reduce((sum, { inFlight }) => sum + inFlight, 0)

/** Since when a connection has had neither a message nor room for one. */
const waitsSince = ({ arrived, joined, turnEnded }: Member): number => Math.max(joined, arrived, turnEnded)

/**
 * Returns how long a connection has waited. `turn` is the length of a turn in milliseconds. A connection that keeps its
 * turn comes first: it may have further messages.
 */
const waitOf = (member: Member, now: number, turn: number): number => {
  if (!hasRoom(member)) return now - waitsSince(member)
  const isKept = now - member.roomSince < most * turn && now - member.turnSince < times.quantum
  return isKept ? Number.POSITIVE_INFINITY : 0
}

const isBusy = ({ arrived, inFlight }: Member, now: number): boolean =>
  inFlight > 0 || now - arrived < times.longestTurn

/**
 * Whether a connection has used all of its room, so further messages may wait. nsqd needs a moment to fill the room
 * after a settlement.
 */
const isSaturated = (member: Member, now: number, moment: number): boolean =>
  isBusy(member, now) && (hasRoom(member) ? now - member.roomSince < moment : member.arrived >= member.changed)

const isWaiting = ({ inFlight, share }: Member): boolean => inFlight === 0 && share === 0

/** Whether a connection delivered a moment ago, but now waits while others have their turn. */
const isDeprived = (member: Member, now: number): boolean => isWaiting(member) && isBusy(member, now)

const isStarved = (member: Member, now: number): boolean =>
  isWaiting(member) && now - waitsSince(member) >= times.quantum

const give = (member: Member, share: number, now: number): void => {
  const had = hasRoom(member)
  member.share = share
  member.changed = now
  if (!had) member.roomSince = member.turnSince = now
  else if (!hasRoom(member)) member.turnEnded = now
  member.rdy(share)
}

/**
 * Returns the round trip to nsqd, learned from a message that has just arrived. After the end of the turn, the message
 * was under way since that end, unless nsqd sent it in place of a requeued one: the result may then be far too long.
 * With room left, it was under way no longer than the room exists, unless nsqd sent it before an earlier turn ended.
 */
const learned = (latency: number, { changed, inFlight, roomSince, share, turnEnded }: Member, now: number): number => {
  if (inFlight > share) return Math.max(latency, now - changed)
  return roomSince - turnEnded < Math.min(latency, times.longestTurn) ? latency : Math.min(latency, now - roomSince)
}

/**
 * The open connections and their credit now. `latency` is the round trip to nsqd in milliseconds. `ofOpen` is the credit without
 * what is in flight on lost connections, and `free` also without what is in flight on open ones.
 */
const viewOf = (members: Iterable<Member>, limit: number, latency: number, now: number) => {
  const open = [...members].filter(({ isLost }) => !isLost)
  const free = limit - sumOf(members)
  const moment = Math.max(times.moment, 2 * latency)
  const isAnySaturated = open.some((member) => isSaturated(member, now, moment))
  return { limit, latency, moment, now, open, free, ofOpen: free + sumOf(open), isAnySaturated }
}

type View = ReturnType<typeof viewOf>

/** The length of a turn in milliseconds. */
const turnOf = ({ free, isAnySaturated, latency, limit, now, open }: View): number => {
  if (limit === 0 || (limit >= open.length && !isAnySaturated)) return times.longestTurn
  const round = open.some((member) => isDeprived(member, now)) ? 0 : times.round
  const part = (round * (isAnySaturated ? 1 : Math.max(1, free))) / open.length
  return Math.min(Math.max(part, 2 * latency, times.shortestTurn), times.longestTurn)
}

/** Milliseconds until a connection without room has waited for a quantum; infinity if none waits, or all have waited so long. */
const untilStarved = ({ now, open }: View): number =>
  Math.min(
    ...open
      .filter(isWaiting)
      .map((member) => waitsSince(member) + times.quantum - now)
      .map((millis) => (millis > 0 ? millis : Number.POSITIVE_INFINITY))
  )

/** The shares of the open connections. `withheld` is credit for a starved one, available after the next settlement. */
const sharesOf = (view: View, withheld: number): ReadonlyArray<number> => {
  const { isAnySaturated, now, ofOpen, open } = view
  const turn = turnOf(view)
  const demands = open.map((member) => {
    const { inFlight, max } = member
    return { inFlight, isBusy: isBusy(member, now), max, waited: waitOf(member, now, turn) }
  })
  return distributeRdy(ofOpen - withheld, demands, isAnySaturated)
}

/**
 * Makes a credit of 0 without connections. `elapsed` returns monotonic milliseconds. `onPause` is called when a long pause
 * has become shorter.
 *
 * Long, because its functions share the members and the limit.
 */
export const make = (elapsed: () => number, onPause: () => void = () => {}): Credit => {
  const members = new Set<Member>()
  let limit = 0
  /** Whether some credit could not be distributed; the next settlement then redistributes it. */
  let isShort = false
  /** The round trip to nsqd, as learned so far, in milliseconds. */
  let latency = 0

  /** Since when ticks have changed nothing, and nothing has happened between them. */
  let quietSince: number | undefined
  let isLong = false

  const view = (): View => viewOf(members, limit, latency, elapsed())

  const pauseOf = (seen: View): number => {
    const { free, moment, now, open } = seen
    if (limit === 0 || open.length < 2) return Number.POSITIVE_INFINITY
    if (free <= 0) return untilStarved(seen)
    // By then, all that depends on the time of something has changed.
    const isQuiet = quietSince !== undefined && now - quietSince >= Math.max(times.longestTurn, moment)
    return isQuiet ? Number.POSITIVE_INFINITY : turnOf(seen)
  }

  const happened = (): void => {
    quietSince = undefined
    if (!isLong) return
    isLong = false
    onPause()
  }

  const distribute = (seen = view(), withheld = 0): void => {
    const { now, ofOpen, open } = seen
    const shares = sharesOf(seen, withheld)
    isShort = shares.reduce((sum, share) => sum + share, 0) < ofOpen
    const changes = open.map((member, index) => ({ member, share: shares[index]!, by: shares[index]! - member.share }))
    // Shares are lowered before others are raised: their sum never exceeds the credit.
    for (const { by, member, share } of changes.toSorted((a, b) => a.by - b.by)) {
      if (by === 0) continue
      give(member, share, now)
      quietSince = undefined
    }
  }

  const membershipOf = (member: Member): Membership => ({
    arrived: () => {
      const now = elapsed()
      member.inFlight++
      member.arrived = now
      if (!member.isLost) latency = learned(latency, member, now)
      // The message arrived after the turn: it takes credit that another connection has now.
      if (member.inFlight > member.share) distribute()
      happened()
    },
    settled: () => {
      const had = hasRoom(member)
      member.inFlight--
      if (!had) member.roomSince = elapsed()
      if (member.isLost || isShort) distribute()
      happened()
    },
    lost: () => {
      member.isLost = true
      distribute()
      happened()
    },
    leave: () => {
      members.delete(member)
      distribute()
      happened()
    }
  })

  return {
    set: (wanted) => {
      if (wanted === limit) return
      limit = wanted
      distribute()
      happened()
    },
    join: (rdy, max) => {
      const now = elapsed()
      const since = { joined: now, changed: now, roomSince: now, turnSince: now, turnEnded: -Infinity }
      const member: Member = { rdy, max, isLost: false, inFlight: 0, share: 0, arrived: -times.longestTurn, ...since }
      members.add(member)
      distribute()
      happened()
      return membershipOf(member)
    },
    tick: () => {
      const seen = view()
      if (limit === 0 || seen.open.length < 2) return
      quietSince ??= seen.now
      distribute(seen, seen.free <= 0 && seen.open.some((member) => isStarved(member, seen.now)) ? 1 : 0)
    },
    pause: () => {
      const pause = pauseOf(view())
      isLong = pause > times.longestTurn
      return pause
    }
  }
}

/** Makes a credit that ticks. */
export const ticking = (timers: Timers.Timers): Credit => {
  let timer: Timers.Timer | undefined
  const arm = (): void => {
    timers.cancel(timer)
    const pause = credit.pause()
    timer = Number.isFinite(pause) ? timers.after(pause, tick) : undefined
  }
  const tick = (): void => {
    credit.tick()
    arm()
  }
  const credit = make(timers.now, arm)
  arm()
  return credit
}
