/**
 * The life of a delivery in a consumer, as a pure machine: {@link step} takes a life and an event, and returns the next
 * life and effects. The engine turns states and effects into calls: it queues and sends the settlement of a delivery
 * that is `Decided`, waits while the delivery is `Held` or `Kept`, and removes it when it is `Over`.
 *
 * | state | meaning |
 * | --- | --- |
 * | Waiting | no handler has begun the delivery |
 * | Decoding | an asynchronous codec decodes its body |
 * | Running | a handler has begun it |
 * | Decided | its settlement is queued |
 * | Settling | its settlement was sent to the broker, which has not answered |
 * | Held | its settlement waits until the broker accepts settlements again |
 * | Kept | the broker rejected its settlement, or the delivery was lost repeatedly; the settlement waits for a pause |
 * | Over | it is settled or lost |
 *
 * A copy is one publication of a message: a retry may publish another one. When a delivery is lost, its decision is
 * remembered, and repeated when the broker redelivers the same copy. No handler runs twice.
 *
 * A handler may ack its message in a transaction, whose end the engine does not see. Such a delivery is never acked: it is settled
 * as after a failure. If the broker then reports it as lost, the transaction was committed. Otherwise it was rolled back, and
 * the message is redelivered.
 */
import type { Delivery } from "../message/Delivery.ts"
import { truncations } from "../message/Metadata.ts"
import * as Settlement from "../message/Settlement.ts"
import type { SettleFailure } from "../port/Broker.ts"

/**
 * A settlement that was decided for this delivery, or for an earlier delivery of the same copy. Times are monotonic, in
 * milliseconds.
 */
export interface Decision {
  readonly settlement: Settlement.Settlement
  /** When the settlement's delay ends; 0 if it has no delay. */
  readonly due: number
  /** How often a delivery was lost before the broker accepted this settlement. */
  readonly losses: number
  /** When the settlement may be sent again after a delivery was lost. */
  readonly tryAt: number
  /** Whether a handler had begun the delivery. */
  readonly isBegun: boolean
  /** Whether the broker has settled the message, so this only ends a duplicate delivery. */
  readonly isDone: boolean
  /**
   * The settlement to send next, if the broker has rejected this one or the settlement waits for `tryAt`; otherwise
   * `undefined`.
   */
  readonly kept: Kept | undefined
}

/** A settlement to send after `pause` milliseconds. `isQuarantined`: the broker rejects every form of the settlement. */
export interface Kept {
  readonly settlement: Settlement.Settlement
  readonly pause: number
  readonly isQuarantined: boolean
}

/** The state of a delivery. States between the end of the handler run and the broker's answer contain a decision. */
export type State =
  | { readonly _tag: "Waiting" | "Decoding" | "Running" | "Over" }
  | { readonly _tag: "Decided" | "Settling" | "Held" | "Kept"; readonly decision: Decision }

/** The unusual facts of a delivery. Almost all deliveries have {@link ordinary}, which has none. */
export interface History {
  /** Whether the delivery's connection or lease is lost. The broker then redelivers the message. */
  readonly isLost: boolean
  /** How many deliveries the broker has counted although they reached no handler. */
  readonly uncounted: number
  /** The decision of an earlier delivery, to be repeated on this one. */
  readonly prior: Decision | undefined
  /**
   * A redelivery that arrived during the settlement. `lost`: the redelivery is lost too. `separate`: it is handled as
   * another delivery.
   */
  readonly redelivery: Delivery | "lost" | "separate" | undefined
  /** Its ack in a transaction. `refused`: the adapter refused it, so no transaction acks the message. */
  readonly transaction: "enlisted" | "refused" | undefined
}

/** A delivery from its arrival until it is settled or lost. */
export interface Life {
  readonly delivery: Delivery
  readonly state: State
  readonly history: History
}

/** Events of a delivery. */
export type Event =
  | { readonly _tag: "DecodingStarted" | "DecodingEnded" | "Started" }
  /** The handler acks it in a transaction. */
  | { readonly _tag: "Enlisted" }
  /** The adapter has refused the ack in the transaction, perhaps after the run. */
  | { readonly _tag: "Refused" }
  /** The handler run has ended, or the delivery needs no run. */
  | { readonly _tag: "Concluded"; readonly settlement: Settlement.Settlement }
  /** The decision of an earlier delivery is repeated. */
  | { readonly _tag: "Repeated" }
  /** The dead-letter budget is used up: the message is returned to its queue instead. */
  | { readonly _tag: "Denied" }
  | { readonly _tag: "Sent" | "Taken" }
  | ({ readonly _tag: "Failed" } & Pick<SettleFailure, "fate" | "smaller">)
  /** The delivery's settlement may be sent again. */
  | { readonly _tag: "Resumed" }
  | { readonly _tag: "Lost" }
  | { readonly _tag: "Redelivered"; readonly delivery: Delivery }
  /** The redelivery that arrived during the settlement is lost. */
  | { readonly _tag: "RedeliveryLost" }
  /** The consumer stops. Closing the subscription returns the message of a `Kept` delivery to its queue. */
  | { readonly _tag: "Stopped" }

/** Facts that the outcome of an event may depend on. */
export interface Context {
  /** The monotonic time, in milliseconds. */
  readonly now: number
  readonly isStopping: boolean
  /** Whether a delivery ends when its connection breaks. The broker's count of attempts may then restart. */
  readonly isBound: boolean
  /** Whether the broker counts a released delivery as an attempt. */
  readonly countsReleases: boolean
  /** Whether every retry publishes a copy. A redelivery of the original is then never the retry. */
  readonly copiesRetries: boolean
}

/** The consumer's memory of a copy, until the broker redelivers the copy. */
export interface Memory {
  /** The message's id, because copies from foreign producers may share a name. */
  readonly id: string
  readonly attempts: number
  /** The broker's count of attempts. */
  readonly brokerAttempts: number
  readonly decision: Decision | undefined
  /** Whether a delivery was lost. If not, only the attempts are remembered. */
  readonly isLost: boolean
}

/** Actions of the engine in addition to those that the state requires. */
export type Effect =
  | { readonly _tag: "Remember"; readonly memory: Memory }
  /** The redelivery that arrived during the settlement begins its life, with a prior decision. */
  | { readonly _tag: "Repeat"; readonly life: Life }
  /**
   * The event's redelivery is handled as another delivery. Without this effect, the engine does nothing with the
   * redelivery.
   */
  | { readonly _tag: "Separate" }
  /** The transaction was committed, so the message is done. */
  | { readonly _tag: "Committed" }

/** The next life, and the effects in their order. */
export interface Step {
  readonly life: Life
  readonly effects: ReadonlyArray<Effect>
}

/** The states in which each event can happen. In any other state, the event is a defect of the engine. */
export const states: { readonly [E in Event["_tag"]]: ReadonlyArray<State["_tag"]> } = {
  DecodingStarted: ["Waiting"],
  DecodingEnded: ["Decoding"],
  Started: ["Waiting"],
  Enlisted: ["Running"],
  Refused: ["Running", "Decided", "Settling", "Held", "Kept"],
  Concluded: ["Waiting", "Running"],
  Repeated: ["Waiting"],
  Denied: ["Decided"],
  Sent: ["Decided"],
  Taken: ["Settling"],
  Failed: ["Settling"],
  Resumed: ["Held", "Kept"],
  Lost: ["Waiting", "Decoding", "Running", "Decided", "Settling", "Held", "Kept"],
  Redelivered: ["Waiting", "Decoding", "Running", "Decided", "Settling", "Held", "Kept"],
  RedeliveryLost: ["Settling"],
  Stopped: ["Kept"]
}

/** The pause before a rejected settlement is sent again, in milliseconds: it doubles each time, up to the longest. */
const pauses = { first: 1000, longest: 60_000 }

/** The history of a delivery about which nothing is unusual. */
export const ordinary: History = {
  isLost: false,
  uncounted: 0,
  prior: undefined,
  redelivery: undefined,
  transaction: undefined
}

// Shared, so a message that is acked allocates no state.
/** The state of a delivery that has arrived. */
export const waiting: State = { _tag: "Waiting" }
const decoding: State = { _tag: "Decoding" }
const running: State = { _tag: "Running" }
/** The state of a delivery that is settled or lost. */
export const over: State = { _tag: "Over" }
const acked: Decision = {
  settlement: Settlement.Ack,
  due: 0,
  losses: 0,
  tryAt: 0,
  isBegun: true,
  isDone: false,
  kept: undefined
}
const decidedAck: State = { _tag: "Decided", decision: acked }
const settlingAck: State = { _tag: "Settling", decision: acked }
const none: ReadonlyArray<Effect> = []

/** Returns the decision of a state; `undefined` if it has none. */
export const decisionOf = (state: State): Decision | undefined => ("decision" in state ? state.decision : undefined)

/** Whether no handler has begun the delivery in this state. */
export const isUnbegun = ({ _tag }: State): boolean => _tag === "Waiting" || _tag === "Decoding"

/** Whether its handler has acked it in a transaction, or has tried to. */
export const isEnlisted = ({ history }: Pick<Life, "history">): boolean => history.transaction !== undefined

/**
 * Whether a settlement with this fate shows that the transaction was committed. `lost` shows it only if the delivery was not known to
 * be lost, and was not redelivered.
 */
export const isCommitted = ({ history }: Pick<Life, "history">, fate: SettleFailure["fate"]): boolean =>
  fate === "committed" ||
  (fate === "lost" && history.transaction === "enlisted" && !history.isLost && history.redelivery === undefined)

/**
 * Returns the next life and the effects of an event. Throws if the event cannot happen in the life's state, see {@link
 * states}. Pure.
 */
export const step = (life: Life, event: Event, context: Context): Step => {
  const { state } = life
  if (!states[event._tag].includes(state._tag))
    throw new Error(`Lifecycle.step: ${event._tag} cannot happen while ${state._tag}`)
  switch (event._tag) {
    case "DecodingStarted":
      return at(life, decoding)
    case "DecodingEnded":
      return at(life, waiting)
    case "Started":
      return at(life, running)
    case "Enlisted":
      return enlisted(life, "enlisted")
    case "Refused":
      return enlisted(life, "refused")
    case "Concluded":
      return decide(life, event.settlement, context)
    case "Repeated":
      return repeated(life, life.history.prior!, context)
    case "Denied":
      return decide(life, Settlement.Release(), context)
    case "Sent":
      return at(life, sent(state))
    case "Taken":
      return taken(life, decisionOf(state)!)
    case "Failed":
      return failed(life, decisionOf(state)!, event, context)
    case "Resumed":
      return resumed(life, decisionOf(state)!, context)
    case "Lost":
      return lost(life)
    case "Redelivered":
      return redelivered(life, event.delivery, context)
    case "RedeliveryLost":
      return { life: loseRedelivery(life), effects: none }
    case "Stopped":
      return lose(life)
  }
}

/**
 * Shortcuts of {@link step} without an allocation, for the events of almost every message. Each returns the state that
 * `step` returns; `undefined` if the event has effects or changes more than the state.
 */
export const quick = {
  started: (): State => running,
  acked: ({ history }: Life): State | undefined =>
    history.prior === undefined && history.transaction === undefined ? decidedAck : undefined,
  sent: (state: State): State => sent(state),
  taken: ({ history, state }: Life): State | undefined =>
    history.redelivery === undefined && decisionOf(state)?.kept === undefined ? over : undefined
}

/** Returns a redelivery with the attempts that are remembered of its copy, and a history with the remembered decision. */
export const recall = (memory: Memory, redelivery: Delivery): Pick<Life, "delivery" | "history"> => {
  const delivery = continued(redelivery, memory)
  const uncounted = redelivery.attempts - delivery.attempts
  return { delivery, history: { ...ordinary, uncounted, prior: memory.decision } }
}

const at = (life: Life, state: State): Step => ({ life: { ...life, state }, effects: none })

const sent = (state: State): State =>
  state === decidedAck ? settlingAck : { _tag: "Settling", decision: decisionOf(state)! }

const enlisted = (life: Life, transaction: History["transaction"]): Step => ({
  life: { ...life, history: { ...life.history, transaction } },
  effects: none
})

/** Decides a settlement: at the end of a run, or again after a failure. */
const decide = (life: Life, settlement: Settlement.Settlement, context: Context): Step => {
  const { history, state } = life
  if (isEnlisted(life) && settlement._tag === "Ack")
    throw new Error("Lifecycle.step: Ack cannot settle a message that its handler has acked in a transaction")
  const before = decisionOf(state) ?? history.prior
  const isBegun = state._tag === "Running" || decisionOf(state)?.isBegun === true
  const decision: Decision = {
    settlement: settlement._tag === "Release" && isBegun ? { ...settlement, isBegun } : settlement,
    due: delayOf(settlement) > 0 ? context.now + delayOf(settlement) : (before?.due ?? 0),
    losses: before?.losses ?? 0,
    tryAt: before?.tryAt ?? 0,
    isBegun,
    isDone: before?.isDone === true,
    kept: before?.kept
  }
  const isPlainAck = settlement._tag === "Ack" && before === undefined
  const next: Life = { ...life, state: isPlainAck ? decidedAck : { _tag: "Decided", decision } }
  return { life: next, effects: noteOf(next, decision, context) }
}

/** After repeated losses the settlement waits, so loss and redelivery do not alternate without a pause. */
const repeated = (life: Life, prior: Decision, context: Context): Step => {
  const pause = prior.tryAt - context.now
  if (pause <= 0) return decide(life, remaining(prior, prior.settlement, context), context)
  return keep(life, prior, { settlement: prior.settlement, pause, isQuarantined: false })
}

const resumed = (life: Life, decision: Decision, context: Context): Step =>
  decide(
    life,
    decision.kept === undefined || life.state._tag === "Held"
      ? decision.settlement
      : remaining(decision, decision.kept.settlement, context),
    context
  )

const taken = (life: Life, decision: Decision): Step => {
  const { redelivery } = life.history
  if (redelivery === undefined || redelivery === "separate") return at(life, over)
  // The adapter repeats only an ack: it alone knows whether it published a copy.
  const settlement = goesBack(decision.settlement) ? decision.settlement : Settlement.Ack
  const settled: Life = { ...life, state: { _tag: "Settling", decision: { ...decision, settlement, isDone: true } } }
  return redelivery === "lost" ? remember(settled) : repeatOn(settled, redelivery)
}

const failed = (
  life: Life,
  decision: Decision,
  { fate, smaller }: Pick<SettleFailure, "fate" | "smaller">,
  context: Context
): Step => {
  if (isCommitted(life, fate)) {
    const ended = taken(life, { ...decision, settlement: Settlement.Ack })
    return { ...ended, effects: [...ended.effects, { _tag: "Committed" }] }
  }
  // A redelivery that is handled separately replaces this one.
  if (fate === "lost" || life.history.redelivery === "separate") {
    const losses = decision.losses + 1
    const tryAt = context.now + (losses < 2 ? 0 : Math.min(pauses.first * 2 ** (losses - 2), pauses.longest))
    return lose({ ...life, state: { _tag: "Settling", decision: { ...decision, losses, tryAt } } })
  }
  if (fate === "rejected") {
    const adopted = adopt(life)
    return context.isStopping ? lose(adopted) : rejected(adopted, decision, smaller !== false, context)
  }
  return context.isStopping ? lose(life) : at(adopt(life), { _tag: "Held", decision })
}

/** The broker rejects this settlement: a smaller copy is tried, then the end of its delay here, then quarantine. */
const rejected = (life: Life, decision: Decision, maySmaller: boolean, context: Context): Step => {
  const { kept, settlement } = decision
  const smaller = maySmaller ? cutMore(settlement) : undefined
  if (smaller !== undefined) return decide(life, smaller, context)
  const native = withoutCopy(settlement)
  if (native !== undefined)
    return keep(life, decision, { settlement: native, pause: delayOf(settlement), isQuarantined: false })
  if (kept?.isQuarantined === true)
    return keep(
      life,
      { ...decision, settlement: kept.settlement },
      { ...kept, pause: Math.min(2 * kept.pause, pauses.longest) }
    )
  const whole = { ...settlement, ...("cut" in settlement ? { cut: undefined } : {}) }
  return keep(life, { ...decision, settlement: whole }, { settlement: whole, pause: pauses.first, isQuarantined: true })
}

const keep = (life: Life, decision: Decision, kept: Kept): Step =>
  at(life, { _tag: "Kept", decision: { ...decision, kept } })

/** A delivery that a handler or the adapter has ends with that; any other ends at once. */
const lost = (life: Life): Step => {
  const { history, state } = life
  const marked: Life = history.isLost ? life : { ...life, history: { ...history, isLost: true } }
  const isBusy = state._tag === "Running" || state._tag === "Decided" || state._tag === "Settling"
  return isBusy ? { life: marked, effects: none } : lose(marked)
}

/** Ends a lost delivery. Its decision, if any, is repeated on the redelivery: the one that has arrived, or the next. */
const lose = (life: Life): Step => {
  const { history, state } = life
  const { redelivery } = history
  if (redelivery === "separate") return at(life, over)
  return typeof redelivery === "object" && "decision" in state ? repeatOn(life, redelivery) : remember(life)
}

const redelivered = (life: Life, delivery: Delivery, context: Context): Step => {
  const { history, state } = life
  // An older one, which was sent before the delivery in flight and arrived after it, is ignored.
  if (!(context.isBound && history.isLost) && delivery.attempts < brokerAttempts(life)) return { life, effects: none }
  if (state._tag === "Settling") {
    const { due, settlement } = state.decision
    const isCopied = settlement._tag === "Retry" && context.copiesRetries
    // A returned message is a new delivery, unless it arrives before it is due, or while its copy exists.
    const isSame = !goesBack(settlement) || isCopied || history.isLost || due > context.now
    if (isSame) return { life: { ...life, history: { ...history, redelivery: delivery } }, effects: none }
    const before = typeof history.redelivery === "object" ? loseRedelivery(life) : life
    const separate: Life = { ...before, history: { ...before.history, redelivery: "separate" } }
    return { life: separate, effects: [...noteOf(before, state.decision, context), { _tag: "Separate" }] }
  }
  // If other consumers had the message in between, it may have to run alone, or not at all.
  if (isUnbegun(state) && continued(delivery, countsOf(life)).attempts > life.delivery.attempts) {
    const { effects, life: ended } = lost(life)
    return { life: ended, effects: [...effects, { _tag: "Separate" }] }
  }
  return { life: replace(life, delivery), effects: none }
}

/** The redelivery takes the place of the delivery. */
const replace = (life: Life, redelivery: Delivery): Life => {
  const delivery = continued(redelivery, countsOf(life))
  const uncounted = redelivery.attempts - delivery.attempts
  return { ...life, delivery, history: { ...life.history, uncounted, isLost: false } }
}

/** A redelivery that arrived during a failed settlement takes the place of the delivery. */
const adopt = (life: Life): Life => {
  const { redelivery } = life.history
  if (typeof redelivery !== "object") return life
  return replace({ ...life, history: { ...life.history, redelivery: undefined } }, redelivery)
}

const loseRedelivery = (life: Life): Life => {
  const { delivery, history } = life
  if (typeof history.redelivery !== "object") return life
  return {
    ...life,
    history: { ...history, uncounted: history.redelivery.attempts - delivery.attempts, redelivery: "lost" }
  }
}

/** Ends the delivery, and begins the life of its redelivery with the same decision. */
const repeatOn = (life: Life, redelivery: Delivery): Step => {
  const { delivery, history } = replace(life, redelivery)
  const prior = { ...(decided(life) ?? decisionOf(life.state)!), kept: undefined }
  const next: Life = {
    delivery,
    state: waiting,
    history: { ...ordinary, uncounted: history.uncounted, prior }
  }
  return { life: { ...life, state: over }, effects: [{ _tag: "Repeat", life: next }] }
}

const remember = (life: Life): Step => ({
  life: { ...life, state: over },
  effects: [{ _tag: "Remember", memory: { ...countsOf(life), decision: decided(life), isLost: true } }]
})

/** Remembers the attempts of a returned message for which the broker counts too many. */
const noteOf = (life: Life, { isBegun, settlement }: Decision, { countsReleases }: Context): ReadonlyArray<Effect> => {
  const { history } = life
  if (!goesBack(settlement) || history.redelivery === "separate") return none
  // A repeated settlement counts as the first one did.
  const isUncounted = settlement._tag === "Release" && countsReleases && !isBegun && history.prior === undefined
  if (!isUncounted && history.uncounted === 0) return none
  const counts = countsOf(life)
  const memory: Memory = {
    ...counts,
    // The next delivery is a new attempt, unless this one was not run.
    brokerAttempts: isUncounted ? counts.brokerAttempts : counts.brokerAttempts - 1,
    // The next delivery of a retry is the retry itself, which is not repeated.
    decision: settlement._tag === "Retry" ? undefined : decided(life),
    isLost: false
  }
  return [{ _tag: "Remember", memory }]
}

/** Returns the decision to repeat: of this delivery or an earlier one. A release decides nothing. */
const decided = ({ history, state }: Life): Decision | undefined =>
  [decisionOf(state), history.prior]
    .filter((decision) => decision !== undefined)
    .filter(({ settlement }) => settlement._tag !== "Release")
    .map((decision) => (decision.kept === undefined ? decision : { ...decision, kept: undefined }))[0]

const brokerAttempts = ({ delivery, history }: Life): number => delivery.attempts + history.uncounted

const countsOf = (life: Life): Pick<Memory, "id" | "attempts" | "brokerAttempts"> => ({
  id: life.delivery.metadata.id,
  attempts: life.delivery.attempts,
  brokerAttempts: brokerAttempts(life)
})

/**
 * Returns the delivery with the attempts of its predecessor, because an unfinished delivery and its redelivery are one
 * attempt. Deliveries to other consumers in between count.
 */
const continued = (delivery: Delivery, before: Pick<Memory, "attempts" | "brokerAttempts">): Delivery => {
  const attempts = before.attempts + Math.max(0, delivery.attempts - before.brokerAttempts - 1)
  // `native` may be a getter of a class, which a spread does not copy.
  return attempts === delivery.attempts ? delivery : { ...delivery, attempts, native: delivery.native }
}

/** Returns the settlement with the rest of its delay. Delays are whole milliseconds, which `now` is not. */
const remaining = ({ due }: Decision, settlement: Settlement.Settlement, { now }: Context): Settlement.Settlement =>
  settlement._tag === "Retry"
    ? Settlement.Retry(Math.min(settlement.delay, Math.max(0, Math.ceil(due - now))), settlement.error)
    : settlement

const delayOf = (settlement: Settlement.Settlement): number => ("delay" in settlement ? settlement.delay : 0)

/** Whether the settlement returns the message to its queue. */
const goesBack = ({ _tag }: Settlement.Settlement): boolean => _tag === "Retry" || _tag === "Release"

/** Returns the settlement with a smaller copy; `undefined` if it publishes no copy, or none can be smaller. */
const cutMore = (settlement: Settlement.Settlement): Settlement.Settlement | undefined => {
  const { _tag } = settlement
  if (_tag === "Ack" || _tag === "Drop" || (_tag === "Release" && settlement.delay === 0)) return undefined
  const cut = truncations[settlement.cut === undefined ? 0 : truncations.indexOf(settlement.cut) + 1]
  return cut === undefined ? undefined : { ...settlement, cut }
}

/** Returns how to settle a delayed message without a copy, after its delay; `undefined` for all others. */
const withoutCopy = (settlement: Settlement.Settlement): Settlement.Settlement | undefined => {
  if (delayOf(settlement) === 0) return undefined
  return settlement._tag === "Retry" ? Settlement.Retry(0, settlement.error) : Settlement.Release()
}
