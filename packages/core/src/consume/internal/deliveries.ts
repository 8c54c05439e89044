/**
 * The owner of every delivery in flight, from its arrival until it is settled or lost: it steps the lives of {@link Lifecycle},
 * and does what their states and effects require.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Failure } from "../../policy/Failure.ts"
import * as Settlement from "../../message/Settlement.ts"
import type * as BackoffState from "../../policy/BackoffState.ts"
import type { SettleFailure } from "../../port/Broker.ts"
import * as Bag from "../../runtime/Bag.ts"
import * as Lifecycle from "../Lifecycle.ts"
import * as Copies from "./copies.ts"
import type { Decider } from "../../policy/Decider.ts"
import type { Flow } from "./flow.ts"
import type { Item } from "./item.ts"
import type { Reporter } from "../../observe/Reporter.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import * as Settler from "./settler.ts"
import * as Transactions from "./transactions.ts"

/** How many deliveries are in which condition. */
interface Counts {
  readonly inFlight: number
  /** Lost with their connection or lease, while a handler or a settlement still has them. */
  readonly lost: number
  /** Kept by this process because the broker rejects their settlement or its copy. */
  readonly kept: number
  /** Kept ones of which the broker rejects every settlement. */
  readonly quarantined: number
  /** Waiting for the broker to accept settlements again. */
  readonly held: number
}

export interface Deliveries {
  readonly counts: Counts
  /** Adds a delivery. `history`: what is remembered of its copy. Default: nothing. */
  readonly add: (delivery: Delivery, history?: Lifecycle.History) => Item
  /** Applies an event that needs no decision. */
  readonly advance: (item: Item, tag: "DecodingStarted" | "DecodingEnded") => void
  /** A handler begins the delivery. */
  readonly begin: (item: Item) => void
  /**
   * Returns what is remembered about a redelivery. `"merged"`: it replaces a delivery that is running or being settled, or
   * it is older than that delivery, and needs no further work.
   */
  readonly recognise: (delivery: Delivery) => Pick<Lifecycle.Life, "delivery" | "history"> | "merged" | undefined
  /** Repeats the prior settlement of a redelivery. */
  readonly settleKnown: (item: Item) => void
  readonly enlist: Transactions.Enlist
  /** Settles as the verdict, the policy and the budget decide, and returns the settlement. */
  readonly conclude: (item: Item, verdict: Verdict, failure: Failure | undefined) => Settlement.Settlement
  /** Settles, or releases the message if the budget is spent. Returns the settlement. */
  readonly settle: (item: Item, settlement: Settlement.Settlement) => Settlement.Settlement
  /** Ends a run: sends its settlements, together with all others of the current job of the event loop. */
  readonly flush: () => void
  /** Whether this settlement keeps the message's position in its queue, so later messages of its group wait for it. */
  readonly keepsPlace: (settlement: Settlement.Settlement) => boolean
  /** Extends the leases of all deliveries that are not being settled. */
  readonly extendLeases: () => void
  /** Removes the lost deliveries that no handler has begun, and marks the other lost ones. */
  readonly onReconnect: (isGone: (delivery: Delivery) => boolean) => void
  /** Sends the held settlements again: all of them, or one if the broker is probed. */
  readonly resume: () => void
  /** Sends the held settlements once more, and drops kept messages: closing the subscription returns them. */
  readonly stop: () => void
  /** When the last settlement succeeded, in milliseconds since the epoch. */
  readonly lastSettled: () => number | undefined
}

export interface Dependencies
  extends
    Omit<Settler.Options, "isStopping">,
    Omit<Transactions.Dependencies, "onChange" | "signalOf">,
    Pick<HandlerRuntime, "wallClock"> {
  /** Whether the broker has leases, and so may redeliver a message that is still in flight. */
  readonly isLeased: boolean
  /** Whether deliveries end with their connection. */
  readonly isBound: boolean
  /** Whether the broker counts a released delivery as an attempt. */
  readonly countsReleases: boolean
  readonly decider: Decider
  readonly flow: Flow
  readonly reporter: Reporter
  /** Called when a delivery is lost that no handler has begun. */
  readonly onUnwaited: (item: Item) => void
  /** Called when a message of a group is no longer in flight. */
  readonly onEnded: (item: Item, isBack: boolean) => void
  /** Called when a message of a group is no longer in flight, and a redelivery with the same settlement is. */
  readonly onReplaced: (item: Item, by: Item) => void
  readonly progress: { readonly moved: (now: number) => void }
  /** Called when a dead letter is refused because the budget is spent. */
  readonly onExhausted: () => void
  /** Called when the broker has answered an extension of all leases that began at this time. */
  readonly onExtended: (began: number) => void
}

/** A rejection is an answer, so the broker works. A lost delivery is no evidence either way. */
const signals = {
  lost: "Uncounted",
  rejected: "Succeeded",
  committed: "Succeeded",
  transient: "Failed",
  unknown: "Failed"
} as const

/** Makes the item of a new delivery. */
export const itemOf = (delivery: Delivery, history: Lifecycle.History, key: BackoffState.DeliveryId): Item =>
  new Arrived(delivery, history, key)

/** A class: see `ShortList`. */
class Arrived implements Item {
  delivery: Delivery
  state: Lifecycle.State = Lifecycle.waiting
  history: Lifecycle.History
  settlement: Settlement.Settlement = Settlement.Ack
  readonly key: BackoffState.DeliveryId
  body: unknown = undefined
  headers: Item["headers"] = undefined
  group: Item["group"] = undefined
  name: string | undefined = undefined
  arrived = 0
  number = -1
  place = -1

  constructor(delivery: Delivery, history: Lifecycle.History, key: BackoffState.DeliveryId) {
    this.delivery = delivery
    this.history = history
    this.key = key
  }
}

export const make = (dependencies: Dependencies): Deliveries => new InFlight(dependencies)

/** Three counters, and the sizes of collections. */
const counting = (items: Bag.Bag<Item>, held: ReadonlySet<Item>) => ({
  lost: 0,
  kept: 0,
  quarantined: 0,
  get inFlight() {
    return items.size()
  },
  get held() {
    return held.size
  }
})

class InFlight implements Deliveries {
  readonly #dependencies: Dependencies
  readonly #items = Bag.make<Item>()
  readonly #copies: Copies.Copies
  readonly #settler: Settler.Settler
  readonly #transactions: Transactions.Transactions
  /** Items whose settlement waits until the broker accepts settlements again, the next probe first. */
  readonly #held = new Set<Item>()
  readonly counts = counting(this.#items, this.#held)
  #lastKey = 0
  #lastSettled: number | undefined = undefined
  /** Whether the handler's error or a call on the batch has failed a message of the current run: others may fail the same way. */
  #hasFailedAsWhole = false

  constructor(dependencies: Dependencies) {
    this.#transactions = Transactions.make({
      ...dependencies,
      signalOf: (item, verdict, failure) => this.#signalOf(item, verdict, failure),
      // A handler that does not await the answer may have ended, and so may the delivery.
      onChange: (item, tag) => Lifecycle.states[tag].includes(item.state._tag) && this.#advance(item, { _tag: tag })
    })
    const { flow, isBound, outlet, progress, reporter, timers, wallClock } = dependencies
    this.#dependencies = dependencies
    this.#copies = Copies.make(Copies.naming(outlet, reporter), isBound)
    this.#settler = Settler.make({
      ...dependencies,
      isStopping: flow.isStopping,
      onSending: (items) => {
        if (!flow.broker.atRest) flow.broker.signal({ _tag: "Started", id: items[0]!.key })
        for (const item of items) item.state = Lifecycle.quick.sent(item.state)
      },
      onSettled: (item) => this.#onSettled(item),
      onFailed: (item, failure) => this.#onFailed(item, failure),
      onLeaseLost: (item, { error, fate }) => {
        // Its connection was lost during the extension, or its transaction was committed.
        if (item.state === Lifecycle.over || Lifecycle.isEnlisted(item)) return
        reporter.leaseLost(item.delivery, error)
        if (fate === "lost") this.#advance(item, { _tag: "Lost" })
      },
      onAnswered: (hasSettled) => {
        if (hasSettled) this.#lastSettled = wallClock()
        flow.update()
        progress.moved(timers.now())
      },
      onExtended: (began) => {
        flow.update()
        if (began !== undefined) dependencies.onExtended(began)
      }
    })
  }

  add = (delivery: Delivery, history: Lifecycle.History = Lifecycle.ordinary): Item => {
    const item = itemOf(delivery, history, ++this.#lastKey)
    this.#items.add(item)
    if (this.#dependencies.isLeased) this.#copies.add(item)
    return item
  }

  advance: Deliveries["advance"] = (item, tag) => void this.#advance(item, { _tag: tag })

  begin = (item: Item): void => {
    item.state = Lifecycle.quick.started()
  }

  recognise: Deliveries["recognise"] = (delivery) => {
    const same = this.#copies.find(delivery)
    if (same !== undefined && !this.#advance(same, { _tag: "Redelivered", delivery })) return "merged"
    const recalled = this.#copies.recall(delivery)
    return recalled === "older" ? "merged" : recalled
  }

  settleKnown = (item: Item): void => {
    this.#advance(item, { _tag: "Repeated" })
    this.#settler.flushSoon()
  }

  get enlist(): Transactions.Enlist {
    return this.#transactions.enlist
  }

  conclude: Deliveries["conclude"] = (item, verdict, thrown) => {
    const { decider, flow, reporter } = this.#dependencies
    if (Lifecycle.isEnlisted(item)) {
      const rolledBack = this.#transactions.conclude(item, verdict, thrown)
      return this.settle(item, decider.settlement(item.delivery, rolledBack.verdict, rolledBack.failure))
    }
    if (verdict._tag === "Ack" && flow.handler.atRest) return this.settle(item, Settlement.Ack)
    const failure = decider.failure(verdict, thrown)
    if (failure !== undefined && failure !== thrown) reporter.failed(item.delivery, failure, false)
    const settlement = decider.settlement(item.delivery, verdict, failure)
    // Signal first, to lower the credit before the retry is sent.
    this.#signal(this.#signalOf(item, verdict, failure))
    return this.settle(item, settlement)
  }

  settle: Deliveries["settle"] = (item, settlement) => {
    const quick = settlement._tag === "Ack" ? Lifecycle.quick.acked(item) : undefined
    if (quick === undefined) this.#advance(item, { _tag: "Concluded", settlement })
    else {
      item.state = quick
      item.settlement = settlement
      this.#settler.settle(item)
    }
    return item.settlement
  }

  flush = (): void => {
    this.#hasFailedAsWhole = false
    this.#settler.flushSoon()
  }

  keepsPlace: Deliveries["keepsPlace"] = ({ _tag }) =>
    _tag === "Release" || (_tag === "Retry" && this.#dependencies.outlet.subscription?.copiesRetries !== true)

  extendLeases = (): void => this.#settler.extend(this.#items)

  onReconnect: Deliveries["onReconnect"] = (isGone) => {
    for (const item of this.#items) {
      if (item.state !== Lifecycle.over && isGone(item.delivery)) this.#advance(item, { _tag: "Lost" })
    }
    for (const item of this.#items) {
      const { redelivery } = item.history
      if (typeof redelivery === "object" && isGone(redelivery)) this.#advance(item, { _tag: "RedeliveryLost" })
    }
  }

  resume = (): void => {
    const { allowance } = this.#dependencies.flow.broker
    if (allowance !== "none") this.#resumeHeld(allowance === "one" ? 1 : this.#held.size)
  }

  stop = (): void => {
    this.#resumeHeld(this.#held.size)
    for (const item of this.#items) if (item.state._tag === "Kept") this.#advance(item, { _tag: "Stopped" })
  }

  lastSettled = (): number | undefined => this.#lastSettled

  /** Steps the life of an item, and returns whether the event begins a separate delivery. */
  #advance(item: Item, event: Lifecycle.Event): boolean {
    const { history, state } = item
    const { effects, life } = Lifecycle.step(item, event, this.#context())
    item.delivery = life.delivery
    item.state = life.state
    item.history = life.history
    let isSeparate = false
    for (const effect of effects) {
      if (effect._tag === "Remember") this.#copies.remember(item.delivery, effect.memory)
      else if (effect._tag === "Separate") isSeparate = true
    }
    this.#count(item, state, history)
    if (item.state !== state) this.#enter(item, state)
    let isCommitted = false
    for (const effect of effects) {
      if (effect._tag === "Repeat") this.#repeat(item, effect.life)
      else if (effect._tag === "Committed") isCommitted = true
    }
    if (life.state === Lifecycle.over && event._tag !== "Taken") this.#onEnded(item, !isCommitted)
    return isSeparate
  }

  /** Repeats the settlement of an item on its redelivery. */
  #repeat(item: Item, { delivery, history }: Lifecycle.Life): void {
    const next = this.add(delivery, history)
    if (item.group !== undefined) this.#dependencies.onReplaced(item, next)
    this.settleKnown(next)
  }

  #context(): Lifecycle.Context {
    const { countsReleases, flow, isBound, outlet, timers } = this.#dependencies
    const copiesRetries = outlet.subscription?.copiesRetries === true
    return { now: timers.now(), isStopping: flow.isStopping(), isBound, countsReleases, copiesRetries }
  }

  #count(item: Item, state: Lifecycle.State, { isLost }: Lifecycle.History): void {
    const [was, is] = [Lifecycle.decisionOf(state)?.kept, Lifecycle.decisionOf(item.state)?.kept]
    this.counts.kept += Number(is !== undefined) - Number(was !== undefined)
    this.counts.quarantined += Number(is?.isQuarantined === true) - Number(was?.isQuarantined === true)
    if (item.history.isLost === isLost) return
    this.counts.lost += isLost ? -1 : 1
    const { flow, isLeased } = this.#dependencies
    if (!isLeased && isLost) this.#copies.delete(item)
    else if (!isLeased) this.#copies.add(item)
    if (isLost) flow.update()
  }

  /** Does what a new state requires. */
  #enter(item: Item, before: Lifecycle.State): void {
    const { flow, onUnwaited, timers } = this.#dependencies
    const { state } = item
    if (before._tag === "Held") this.#held.delete(item)
    if (state._tag === "Held") this.#held.add(item)
    switch (state._tag) {
      case "Decided":
        item.settlement = state.decision.settlement
        return this.#queue(item)
      case "Held":
        // It was sent before the pause ended. Without a probe under way, nothing else would resume it.
        return flow.broker.mayStart() ? this.resume() : undefined
      case "Kept":
        timers.after(state.decision.kept!.pause, () => this.#resume([item]))
        return flow.update()
      case "Over":
        if (Lifecycle.isUnbegun(before)) onUnwaited(item)
        return this.#remove(item)
      default:
    }
  }

  #queue(item: Item): void {
    const { decider, flow, onExhausted } = this.#dependencies
    const { settlement } = item
    // The gate must not wait for a probe that is returned without a verdict.
    if (settlement._tag === "Release" && !flow.handler.atRest) flow.handler.signal({ _tag: "Uncounted", id: item.key })
    // Almost all transactions are committed, and then nothing is dead-lettered.
    if (Lifecycle.isEnlisted(item) || decider.spend(settlement) === "Allowed") return this.#settler.settle(item)
    this.#advance(item, { _tag: "Denied" })
    onExhausted()
  }

  #resumeHeld(count: number): void {
    if (count > 0 && this.#held.size > 0) this.#resume([...this.#held].slice(0, count))
  }

  #resume(items: ReadonlyArray<Item>): void {
    for (const item of items) {
      // In any other state, something else has ended the wait.
      if (item.state._tag === "Held" || item.state._tag === "Kept") this.#advance(item, { _tag: "Resumed" })
    }
    this.#settler.flush()
  }

  #onSettled(item: Item): void {
    const { decider, flow, onEnded, reporter } = this.#dependencies
    const { delivery, key, settlement } = item
    if (Lifecycle.isEnlisted(item)) this.#onRolledBack(item)
    if (Lifecycle.decisionOf(item.state)?.isDone !== true) decider.earn(settlement)
    if (!flow.broker.atRest) flow.broker.signal({ _tag: "Succeeded", id: key })
    if (reporter.isWatched || settlement._tag !== "Ack") reporter.settled(delivery, settlement)
    const quick = Lifecycle.quick.taken(item)
    if (quick === undefined) this.#advance(item, { _tag: "Taken" })
    else {
      item.state = quick
      this.#remove(item)
    }
    if (item.group !== undefined) onEnded(item, this.keepsPlace(settlement))
  }

  #onFailed(item: Item, { error, fate, smaller }: SettleFailure): void {
    const { decider, flow, reporter } = this.#dependencies
    const { delivery, key, settlement } = item
    if (Lifecycle.isCommitted(item, fate)) return this.#onCommitted(item, fate)
    const wasQuarantined = isQuarantined(item)
    if (!wasQuarantined && !("cut" in settlement && settlement.cut !== undefined)) {
      reporter.settleFailed({ delivery, settlement: settlement._tag, error })
    }
    if (error.reason === "LeaseLost") flow.handler.signal({ _tag: "Failed", id: key })
    flow.broker.fail({ _tag: signals[fate], id: key }, error)
    // Sending it again spends the budget again.
    if (!Lifecycle.isEnlisted(item)) decider.refund(settlement)
    else if (fate === "lost") this.#onRolledBack(item)
    this.#advance(item, { _tag: "Failed", fate, smaller })
    if (isQuarantined(item) && !wasQuarantined) reporter.quarantined(item.delivery, item.settlement, error)
    if (item.state._tag === "Decided") this.#settler.flush()
  }

  /** The transaction was committed that acks the message. */
  #onCommitted(item: Item, fate: SettleFailure["fate"]): void {
    const { decider, flow, reporter, wallClock } = this.#dependencies
    const { delivery, key } = item
    const outcome = this.#transactions.take(item)
    this.#lastSettled = wallClock()
    decider.earn(Settlement.Ack)
    if (!flow.broker.atRest) flow.broker.signal({ _tag: "Succeeded", id: key })
    if (!flow.handler.atRest) flow.handler.signal({ _tag: "Succeeded", id: key })
    reporter.committed(delivery)
    if (outcome?.isThrown === true) reporter.failedLate(delivery, outcome.failure!, "Transaction")
    this.#advance(item, { _tag: "Failed", fate })
  }

  /** The transaction was rolled back that should have acked the message, or the message's lease was lost before. */
  #onRolledBack(item: Item): void {
    const { decider, onExhausted, reporter } = this.#dependencies
    const outcome = this.#transactions.take(item)
    if (outcome === undefined) return
    const { failure, signal } = outcome
    if (failure !== undefined) reporter.failed(item.delivery, failure, false)
    this.#signal(signal)
    if (decider.spend(item.settlement) === "Exhausted") onExhausted()
  }

  /** Returns the signal of a message for the consumer backoff. */
  #signalOf({ key: id }: Item, verdict: Verdict, failure: Failure | undefined): BackoffState.Event {
    const _tag = this.#dependencies.decider.signal(verdict, failure)
    if (_tag !== "Failed") return { _tag, id }
    const isWhole = verdict.by !== "message"
    const isRepeated = isWhole && this.#hasFailedAsWhole
    if (isWhole) this.#hasFailedAsWhole = true
    return { _tag, id, isRepeated }
  }

  #signal(event: BackoffState.Event): void {
    const { handler } = this.#dependencies.flow
    if (event._tag === "Failed" || !handler.atRest) handler.signal(event)
  }

  #onEnded(item: Item, isBack: boolean): void {
    const { onEnded, progress, timers } = this.#dependencies
    if (item.group !== undefined) onEnded(item, isBack)
    progress.moved(timers.now())
  }

  #remove(item: Item): void {
    this.#items.delete(item)
    if (Lifecycle.isEnlisted(item)) this.#transactions.take(item)
    if (item.name !== undefined) this.#copies.delete(item)
    if (item.history.isLost) this.counts.lost--
  }
}

const isQuarantined = ({ state }: Item): boolean => Lifecycle.decisionOf(state)?.kept?.isQuarantined === true
