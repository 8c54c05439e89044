import { familyOf, type Scenario } from "../../Scenario.ts"
import { earlierIn } from "../internal/grouping.ts"
import { othersIn } from "./lanes.ts"
import { windowOf } from "./shares.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import type {
  Attempt,
  Bound,
  CopyLife,
  DeliveryLife,
  KeyLife,
  Lives,
  ProcessLife,
  Settling,
  Turn
} from "../internal/Lives.ts"
import { lateByClocks } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"
import * as Nsq from "../../nsq/Settings.ts"

/** Milliseconds that a due message may take to its handler: leases and daemons are checked every few seconds. */
const longest = 10_000

/** Milliseconds for which a fault has consequences: pauses, leases and timeouts, one after the other. */
const aftermath = 600_000

/**
 * Milliseconds by which the topologies of RabbitMQ may be late with a delay, see `docs/rabbitmq.md`: steps of 50 ms or of a
 * second; rounds; and longer delays in front.
 */
const ofTopology = ({ rabbitmq, sendings, versions }: Scenario): number => {
  const delays = [...versions.flatMap(({ backoff }) => backoff), ...sendings.map(({ delay }) => delay)]
  switch (rabbitmq?.topology) {
    case "perDelayQueue":
      return 1000
    case "waitLoop":
      return Math.max(1000, ...delays)
    case "perMessageTtl":
      return Math.max(60_000, ...delays)
    default:
      return 50
  }
}

/** Milliseconds by which brokers may be late with a delay; a daemon checks a new channel every five seconds. */
const resolutionOf = (scenario: Scenario): number => {
  switch (familyOf(scenario)) {
    case "push":
      return ofTopology(scenario)
    case "lease":
      return 1000
    case "lossy":
      return 5200
    case "store":
      return 1
  }
}

/** Milliseconds, at most, until a consumer learns from nsqlookupd that another nsqd has its topic too: `lookupdInterval`, jittered. */
const discovery = 18_000

/** Milliseconds that a due message may take longer on this broker. */
const beyond = (scenario: Scenario): number => {
  if (scenario.kind === "rabbitmq") return ofTopology(scenario)
  return scenario.kind === "nsq" && Nsq.of(scenario).usesLookupd ? discovery : 0
}

/** The longest time for which messages wait for others of their batch, by the slowest clock. */
const gathering = ({ scenario: { processes, versions } }: Lives): number =>
  Math.max(...versions.map(({ batch }) => batch?.wait ?? 0)) / Math.min(...processes.map(({ clock }) => clock.speed))

/** The longest time for which messages wait for the limit of a rate. */
const limited = ({ scenario: { versions } }: Lives): number =>
  Math.max(...versions.map(({ rateLimit, shareLimits }) => Math.max(rateLimit?.per ?? 0, windowOf(shareLimits) ?? 0)))

/** When the last consequences end that held up messages, of faults that began before a moment. */
const troubledUntil = ({ history }: Lives, before: number): number => {
  const answered = new Set(["lost", "transient", "unknown"])
  const last = history.findLast((entry) => {
    if (entry.at > before) return false
    switch (entry._tag) {
      case "Fault":
      case "NotSent":
      case "Frozen":
      case "Killed":
      case "Draining":
      case "Reconnected":
      case "Lapsed":
      case "Operates":
      case "Operated":
        return true
      case "Told":
        return entry.event === "BackoffEntered"
      case "Back":
        return entry.why !== "asked"
      case "Answered":
        return answered.has(entry.fate ?? "")
      default:
        return false
    }
  })
  if (last === undefined) return 0
  return (last._tag === "Frozen" ? Math.max(last.at, last.until) : last.at) + aftermath
}

const isSlowToDecode = (body: string | undefined): boolean => body === "slowToDecode" || body === "neverDecoded"

/** When the last handler, settlement or codec has ended that was running before this run began. */
const busyUntil = ({ deliveries, history, runs }: Lives, { run: own }: Turn): number => {
  const { at: before } = own.began.entry
  let until = 0
  const work = (from: number, to: number | undefined): void => {
    if (from <= before) until = Math.max(until, Math.min(before, to ?? before))
  }
  for (const run of runs) {
    const { handlerTimeout = 0 } = run.process.version ?? {}
    const { began, ended } = run
    // A promise whose time is over is abandoned.
    if (run !== own) work(began.entry.at, ended?.entry.at ?? began.entry.at + 2 * handlerTimeout)
  }
  for (const { arrived, copy, process, runs: its, settlings } of deliveries.values()) {
    if (process.version === undefined) continue
    for (const { answer, at } of settlings) work(at, history[answer]?.at)
    if (arrived === undefined || !isSlowToDecode(copy.message.plan?.body)) continue
    work(arrived.entry.at, its[0]?.began.entry.at ?? settlings[0]?.at)
  }
  return until
}

/** When the last message of its group or key has left the queue that was there before it. */
const groupedUntil = (lives: Lives, copy: CopyLife, before: number): number => {
  const index = copy.stored?.index ?? 0
  const others = [...earlierIn(lives, copy, index), ...othersIn(lives, copy, index)]
  return Math.max(0, ...others.map((each) => Math.min(endOf(each) ?? before, before)))
}

/** When a message has left its queue, with the copies that its retries made there. */
const endOf = ({ children, gone, stored }: CopyLife): number | undefined => {
  const retry = children.find((each) => each.stored?.entry.queue === stored?.entry.queue)
  return retry === undefined ? gone?.entry.at : endOf(retry)
}

/** When a program that pulls has begun to wait, before a moment: until then, its messages wait. */
const idleUntil = ({ pulls }: ProcessLife, index: number): number => {
  const [open, begins] = [new Set<number>(), pulls.filter((each) => each.index < index)]
  let [since, until] = [0, 0]
  for (const { entry } of begins) {
    if (entry._tag === "Pulling") {
      if (open.size === 0 && entry.at > since) until = entry.at
      open.add(entry.pull)
    } else {
      open.delete(entry.pull)
      since = entry.at
    }
  }
  return until
}

/** Milliseconds for which SQS may hide a returned message: until a poll has ended that runs although there is no credit. */
const poll = 21_000

/** Until when SQS hides a message that was returned before a delivery. */
const hiddenUntil = ({ scenario }: Lives, { copy, handedOut }: DeliveryLife): number => {
  if (familyOf(scenario) !== "lease") return 0
  const before = copy.deliveries.filter(({ back }) => (back?.index ?? Infinity) < (handedOut?.index ?? 0))
  const returned = before.filter(({ settlings }) => settlings.at(-1)?.asked.tag === "Release")
  return Math.max(0, ...returned.map(({ back }) => Math.min(back!.entry.due, back!.entry.at + poll)))
}

/**
 * The first settlement of each message that the broker did not accept: it is requested again with the whole delay, or its process
 * keeps it.
 */
const hindrances = ({ deliveries }: Lives): ReadonlyMap<KeyLife, number> => {
  const first = new Map<KeyLife, number>()
  for (const { copy, settlings } of deliveries.values()) {
    const { index = Infinity } = settlings.find(({ fate }) => fate !== "taken") ?? {}
    first.set(copy.message, Math.min(index, first.get(copy.message) ?? Infinity))
  }
  return first
}

type Hindered = ReturnType<typeof hindrances>

const isHindered = (hindered: Hindered, { message }: CopyLife, before: number): boolean =>
  (hindered.get(message) ?? Infinity) < before

/** The longest delay that every nsqd keeps to the end, in milliseconds. */
const longestNative = 30_000

/**
 * Whether nsqd alone has held back a message, so the clocks of processes do not count: not over several copies, whose due time
 * processes compute, nor over a restart, at which nsqd forgets its delays. Nor if a process whose clock is ahead has returned it
 * before the time in its metadata, which others compare with their clocks.
 */
const isHeldByNsqd = ({ scenario }: Lives, { backs, parent, written }: CopyLife, { at, since }: Bound): boolean =>
  scenario.kind === "nsq" &&
  at - since <= longestNative &&
  (written === undefined || written.at <= at) &&
  backs.every(({ entry }) => entry.why !== "restart") &&
  parent?.settlings.every(({ asked }) => asked.tag !== "Release") !== false

/** Whether a process may not have learned the time of an nsqd: then it waits by its own clock. */
const isTimeless = ({ history }: Lives, { name }: ProcessLife): boolean =>
  history.some((entry) => entry._tag === "Fault" && entry.site.includes(`${name} ask info`))

const shiftOf = (lives: Lives, { copy, process }: DeliveryLife, bound: Bound, at: number): number =>
  isHeldByNsqd(lives, copy, bound) && !isTimeless(lives, process) ? 0 : lateByClocks(lives, bound, at)

/** A handler that begins long after its message is due, though nothing held it up. */
const begunLate = (lives: Lives, hindered: Hindered, { turns }: Attempt): ReadonlyArray<Violation> => {
  const [turn] = turns
  if (turn === undefined) return []
  const { of: life, run } = turn
  const { bound, copy, process } = life
  const { plan } = copy.message
  const { entry, index } = run.began
  if (process.version === undefined || copy.stored === undefined) return []
  if (plan?.metadata !== undefined || isSlowToDecode(plan?.body)) return []
  const due = bound === undefined ? 0 : bound.at + shiftOf(lives, life, bound, entry.at)
  const known = Math.max(due, copy.stored.entry.at, process.started?.entry.at ?? 0)
  const limit = longest + gathering(lives) + limited(lives) + beyond(lives.scenario)
  if (entry.at - known <= limit) return []
  if (isHindered(hindered, copy, index)) return []
  const free = Math.max(
    known,
    busyUntil(lives, turn),
    idleUntil(process, index),
    hiddenUntil(lives, life),
    groupedUntil(lives, copy, entry.at),
    troubledUntil(lives, entry.at)
  )
  if (entry.at - free <= limit) return []
  const what = `${process.name} began a handler at ${Math.round(entry.at)} ms, and nothing was in its way since ${Math.round(free)} ms; expected it within ${Math.round(limit)} ms.`
  return [violation("late", entry.at, of(life), what, [bound?.index, copy.stored.index, life.arrived?.index, index])]
}

/** How long its parent was held back, which may have known a later time than its metadata, such as a retry's. */
const heldUntil = ({ parent, stored }: CopyLife): Bound | undefined => {
  const settling = parent?.settlings.findLast(({ index }) => index < (stored?.index ?? 0))
  if (parent === undefined || settling === undefined) return undefined
  const { asked, at, index } = settling
  return { at: at + asked.delay, since: at, process: parent.process, index }
}

/** A message that is returned for longer than until it is due. */
const heldBack = (
  lives: Lives,
  hindered: Hindered,
  { asked, at, index, of: life }: Settling
): ReadonlyArray<Violation> => {
  const { bound, copy } = life
  if (asked.tag !== "Release" || asked.delay === 0 || bound === undefined) return []
  // A redelivery during a retry waits as the retry does.
  if (life.attempt?.prior !== undefined || isHindered(hindered, copy, index)) return []
  const bounds = [bound, heldUntil(copy) ?? bound]
  const due = Math.max(...bounds.map((each) => each.at + shiftOf(lives, life, each, at))) + longest
  if (at + asked.delay <= due) return []
  const what = `${life.process.name} holds it back until ${Math.round(at + asked.delay)} ms; expected ${Math.round(due)} ms at the latest, when it is due.`
  return [violation("late", at, of(life), what, [bound.index, index])]
}

/** A copy that the broker must hold back for longer than was requested. */
const storedLate = (lives: Lives, { message, parent, stored }: CopyLife): ReadonlyArray<Violation> => {
  if (stored === undefined || stored.entry.native || !lives.work.has(stored.entry.queue)) return []
  const { at, due } = stored.entry
  const sent = message.sending?.entry
  const delays =
    parent === undefined
      ? [sent === undefined ? 0 : sent.earliest - sent.at]
      : parent.settlings.filter((each) => each.index < stored.index).map(({ asked }) => asked.delay)
  const most = Math.max(0, ...delays)
  if (due - at <= most + resolutionOf(lives.scenario)) return []
  const what = `A copy is held back for ${Math.round(due - at)} ms; expected ${Math.round(most)} ms, as was asked.`
  return [violation("late", at, { key: message.key }, what, [stored.index])]
}

/**
 * No handler begins long after its message is due, if nothing holds it up: no handler runs, nothing has failed for long, and no
 * operator has intervened. Nor is a message held back for longer than until it is due.
 */
export const late: Law = (lives) => {
  const hindered = hindrances(lives)
  return [
    ...lives.attempts.flatMap((attempt) => (isWork(lives, attempt) ? begunLate(lives, hindered, attempt) : [])),
    ...[...lives.deliveries.values()].flatMap((life) =>
      isWork(lives, life) ? life.settlings.flatMap((settling) => heldBack(lives, hindered, settling)) : []
    ),
    ...[...lives.copies.values()].flatMap((copy) => storedLate(lives, copy))
  ]
}
