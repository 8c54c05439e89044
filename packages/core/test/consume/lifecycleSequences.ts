/**
 * Every sequence of events of one copy up to a length: its deliveries, their settlements, and what the broker answers. What must
 * hold is checked after each event.
 */
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

const letter = Settlement.DeadLetter("undecodable", "q.dlq", { name: "Error", message: "no" })
const verdicts = [Settlement.Ack, Settlement.Retry(0), Settlement.Retry(500), letter]

/** A copy: the life of its delivery, or what is remembered of a lost one. */
interface Copy {
  readonly life: Lifecycle.Life | undefined
  readonly memory: Lifecycle.Memory | undefined
  readonly deliveries: number
  readonly now: number
  /** The first decision of its handler that the broker has not carried out. */
  readonly decided: Settlement.Settlement["_tag"] | undefined
  /** Whether the broker has carried it out, and only a duplicate must be acked. */
  readonly isDone: boolean
}

const fresh: Copy = { life: undefined, memory: undefined, deliveries: 0, now: 1000, decided: undefined, isDone: false }

const isLetter = ({ settlement }: Lifecycle.Decision): boolean => settlement._tag === "DeadLetter"

/** A message that its handler has acked in a transaction is settled as after a failure. */
const verdictsOf = ({ transaction }: Lifecycle.History): ReadonlyArray<Lifecycle.Event> =>
  verdicts
    .filter(({ _tag }) => transaction === undefined || _tag !== "Ack")
    .map((settlement) => ({ _tag: "Concluded", settlement }))

const refusalOf = ({ transaction }: Lifecycle.History): ReadonlyArray<Lifecycle.Event> =>
  transaction === "enlisted" ? [{ _tag: "Refused" }] : []

const transactionOf = (history: Lifecycle.History): ReadonlyArray<Lifecycle.Event> =>
  history.transaction === undefined ? [{ _tag: "Enlisted" }] : refusalOf(history)

/** The events that can happen next. A message with a prior decision runs no handler: the engine repeats the decision. */
const eventsOf = ({ deliveries, isDone, life, memory }: Copy): ReadonlyArray<Lifecycle.Event | "Deliver"> => {
  // What is settled has left the queue, unless a duplicate of it was lost.
  if (life === undefined || life.state._tag === "Over") return isDone && memory?.isLost !== true ? [] : ["Deliver"]
  const { history, state } = life
  const redelivered = (more: number): Lifecycle.Event => ({
    _tag: "Redelivered",
    delivery: delivery("a", { attempts: deliveries + more })
  })
  // The second one comes after a delivery to another consumer, the third one was sent before the delivery in flight.
  const always = [{ _tag: "Lost" } as const, redelivered(1), redelivered(2), redelivered(-1)]
  switch (state._tag) {
    case "Waiting":
      return history.prior === undefined
        ? [
            ...always,
            { _tag: "Started" },
            { _tag: "DecodingStarted" },
            { _tag: "Concluded", settlement: Settlement.Release() }
          ]
        : [...always, { _tag: "Repeated" }]
    case "Decoding":
      return [...always, { _tag: "DecodingEnded" }]
    case "Running":
      return [...always, ...verdictsOf(history), ...transactionOf(history)]
    case "Decided":
      // The budget denies dead letters only.
      return [
        ...always,
        ...refusalOf(history),
        { _tag: "Sent" },
        ...(isLetter(state.decision) ? [{ _tag: "Denied" } as const] : [])
      ]
    case "Settling":
      return [
        ...always,
        ...refusalOf(history),
        { _tag: "Taken" },
        ...(["lost", "committed", "transient", "rejected"] as const).map((fate) => ({ _tag: "Failed", fate }) as const),
        { _tag: "Failed", fate: "rejected", smaller: false },
        ...(typeof history.redelivery === "object" ? [{ _tag: "RedeliveryLost" } as const] : [])
      ]
    case "Held":
      return [...always, ...refusalOf(history), { _tag: "Resumed" }]
    default:
      return [...always, ...refusalOf(history), { _tag: "Resumed" }, { _tag: "Stopped" }]
  }
}

const context = { isStopping: false, isBound: true, countsReleases: true, copiesRetries: false }

/** What is wrong with a step; `undefined` if nothing is. */
const wrongWith = (copy: Copy, event: Lifecycle.Event, { effects, life }: Lifecycle.Step): string | undefined => {
  const { history, state } = copy.life!
  const before = Lifecycle.decisionOf(state)
  const settlement = Lifecycle.decisionOf(life.state)?.settlement._tag
  // A dead letter that the budget denies is decided again, after the message was released.
  const required = copy.isDone ? "Ack" : settlement === "Release" ? undefined : copy.decided
  const isOver = life.state._tag === "Over"
  const memory = effects.find((effect) => effect._tag === "Remember")?.memory
  const repeat = effects.find((effect) => effect._tag === "Repeat")?.life.history.prior?.settlement._tag
  switch (event._tag) {
    case "Sent":
      return required === undefined || settlement === required
        ? undefined
        : `sends ${settlement}, decided was ${required}`
    case "Started":
      return required === undefined ? undefined : `a handler runs after ${required}`
    case "Redelivered": {
      const isSeparate = effects.some(({ _tag }) => _tag === "Separate")
      const goesBack = before?.settlement._tag === "Retry" || before?.settlement._tag === "Release"
      return isSeparate && before !== undefined && !goesBack ? "a handler runs again during the settlement" : undefined
    }
    case "Taken": {
      if (typeof history.redelivery === "object" && repeat === undefined) return "leaves a redelivery unsettled"
      if (history.redelivery === "lost" && memory === undefined) return "forgets a lost redelivery"
      const isReturned = before?.settlement._tag === "Retry" && !history.isLost && before.due === 0
      return isReturned && repeat === "Retry" ? "returns a message twice" : undefined
    }
    case "Lost": {
      const isBusy = state._tag === "Running" || state._tag === "Decided" || state._tag === "Settling"
      if (isBusy === isOver) return isBusy ? "ends a delivery that is busy" : "keeps a lost delivery"
      break
    }
    default:
  }
  if (event._tag === "Failed" && event.fate === "committed") {
    const { redelivery } = history
    const needed = redelivery === "lost" || typeof redelivery === "object" ? "Ack" : undefined
    return (memory?.decision?.settlement._tag ?? repeat) === needed ? undefined : `does not ${needed ?? "forget"}`
  }
  if (!isOver || history.redelivery === "separate") return undefined
  const isCommitted = effects.some(({ _tag }) => _tag === "Committed")
  const isFenced = history.transaction === "enlisted" && event._tag === "Failed" && event.fate === "lost"
  // A lost connection, or a redelivery, shows that the lease has ended, and not that the transaction was committed.
  const mayBeCommitted = isFenced && !history.isLost && history.redelivery === undefined
  if (isCommitted !== mayBeCommitted) return isCommitted ? "takes a loss for a commit" : "takes a commit for a loss"
  if (isCommitted) return memory === undefined && repeat === undefined ? undefined : "repeats what was committed"
  const records = [
    ...(memory?.isLost === true ? [memory.decision?.settlement._tag] : []),
    ...(repeat === undefined ? [] : [repeat])
  ]
  if (records.length !== 1) return `is lost with ${records.length} records`
  if (memory !== undefined && records[0] === "Release") return "remembers a release"
  return required === undefined || records[0] === required
    ? undefined
    : `remembers ${records[0]}, decided was ${required}`
}

const deliver = (copy: Copy): Copy => {
  const deliveries = copy.deliveries + 1
  const arrived = delivery("a", { attempts: deliveries })
  const recalled = copy.memory && Lifecycle.recall(copy.memory, arrived)
  const life = { history: Lifecycle.ordinary, delivery: arrived, ...recalled, state: Lifecycle.waiting }
  return { ...copy, life, memory: undefined, deliveries }
}

const after = (copy: Copy, event: Lifecycle.Event, { effects, life }: Lifecycle.Step): Copy => {
  const memory = effects.find((effect) => effect._tag === "Remember")?.memory ?? copy.memory
  const repeat = effects.find((effect) => effect._tag === "Repeat")?.life
  const isTaken = event._tag === "Taken"
  const settlement = Lifecycle.decisionOf(copy.life!.state)?.settlement._tag
  const goesBack = settlement === "Retry" || settlement === "Release"
  // After its return, the message has another attempt, unless its redelivery has arrived before.
  const isReturned = isTaken && goesBack && repeat === undefined && memory?.isLost !== true
  // If it was not, the message is redelivered, and has another attempt.
  const isCommitted = effects.some(({ _tag }) => _tag === "Committed")
  const isAnew =
    isReturned ||
    isCommitted ||
    (life.history.redelivery === "separate" && copy.life!.history.redelivery !== "separate")
  const isDecided = event._tag === "Concluded" && event.settlement._tag !== "Release"
  // A denied dead letter decides nothing, unless an earlier delivery has decided.
  const before = event._tag === "Denied" ? copy.life!.history.prior?.settlement._tag : copy.decided
  const decided = isDecided ? event.settlement._tag : before
  return {
    ...copy,
    life: repeat ?? life,
    memory,
    deliveries: event._tag === "Redelivered" ? Math.max(event.delivery.attempts, copy.deliveries) : copy.deliveries,
    decided: isAnew ? undefined : decided,
    isDone: !isAnew && (copy.isDone || (isTaken && !goesBack))
  }
}

/** A step of a sequence, for those who collect them. */
export interface Transition {
  readonly from: Lifecycle.State
  readonly event: Lifecycle.Event
  readonly step: Lifecycle.Step
}

/** Explores all sequences up to a length. Returns their number, and those that break what must hold. */
export const explore = (length: number, onStep: (transition: Transition) => void = () => {}) => {
  let sequences = 0
  const violations: Array<string> = []
  const visit = (copy: Copy, past: ReadonlyArray<string>): void => {
    if (past.length === length || violations.length > 5) return void sequences++
    const events = eventsOf(copy)
    if (events.length === 0) return void sequences++
    for (const event of events) {
      if (event === "Deliver") {
        visit(deliver(copy), past)
        continue
      }
      const pause = event._tag === "Resumed" ? (Lifecycle.decisionOf(copy.life!.state)?.kept?.pause ?? 0) : 0
      const now = copy.now + pause
      const step = Lifecycle.step(copy.life!, event, { ...context, now })
      onStep({ from: copy.life!.state, event, step })
      const line = "settlement" in event ? `${event._tag} ${event.settlement._tag}` : event._tag
      const wrong = wrongWith(copy, event, step)
      if (wrong === undefined) visit({ ...after(copy, event, step), now }, [...past, line])
      else violations.push([...past, line, wrong].join(", "))
    }
  }
  visit(fresh, [])
  return { sequences, violations }
}
