/**
 * Sends settlements to the broker, in batches if the broker supports them, and never during a lease extension of the same
 * delivery.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Direct from "../../runtime/Direct.ts"
import type { SettleFailure } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import * as EventLoop from "../../runtime/EventLoop.ts"
import type { Timer } from "../../runtime/Timers.ts"
import * as Lifecycle from "../Lifecycle.ts"
import type { Group, Item, SubscriptionRef } from "./item.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"

export interface Settler {
  /** Queues a decided item. Queued settlements are sent when they fill a batch or have waited for `wait`. */
  readonly settle: (item: Item) => void
  /** Sends all queued settlements. */
  readonly flush: () => void
  /**
   * Sends the queued settlements at the end of the current job of the event loop, so handlers that end together are settled
   * in one call. Does nothing if the broker settles in batches and has a `wait`.
   */
  readonly flushSoon: () => void
  /** Extends the leases of the items that are neither lost nor being settled. */
  readonly extend: (items: Iterable<Item>) => void
  /** Whether no settlement is queued and no call to the broker is under way. */
  readonly isIdle: () => boolean
}

export interface Options extends Pick<HandlerRuntime, "fork" | "timers"> {
  /** The broker's name, for errors. */
  readonly broker: string
  readonly outlet: SubscriptionRef
  /** Whether the consumer is shutting down. */
  readonly isStopping: () => boolean
  /** The most settlements in one call. */
  readonly batch: number
  /** How long a settlement may wait for others, in milliseconds; 0: until the next flush. */
  readonly wait: number
  readonly watch: Watch | undefined
}

export interface Callbacks {
  readonly onSettled: (item: Item) => void
  readonly onFailed: (item: Item, failure: SettleFailure) => void
  /** Called when the broker refuses to extend a lease. */
  readonly onLeaseLost: (item: Item, failure: SettleFailure) => void
  /** Called before each call to the broker, with its items. */
  readonly onSending: (items: ReadonlyArray<Item>) => void
  /** Called once per call to the broker, after `onSettled` or `onFailed` of all its items. `hasSettled`: whether any succeeded. */
  readonly onAnswered: (hasSettled: boolean) => void
  /**
   * Called once per extension, after `onLeaseLost` of its lost items. `began`: when the broker was asked; `undefined` if it has not
   * answered at all, or not about an item that no handler has begun.
   */
  readonly onExtended: (began: number | undefined) => void
}

/** Long, because settling and extending both need the queued settlements and the calls under way. */
export const make = (options: Options & Callbacks): Settler => {
  const { batch, outlet, timers, wait, watch } = options
  const dead = died(options.broker)
  let pending: Array<Item> = []
  /** The items whose lease is being extended; `undefined` without an extension. */
  let extending: ReadonlySet<Item> | undefined
  let underWay = 0
  let timer: Timer | undefined

  /** Started at the end of the job: a batch that is full by then needs no timer. */
  const waitForOthers = EventLoop.atEndOfJob(() => {
    if (pending.length > 0) timer ??= timers.after(wait, flush)
  })

  const flush = (): void => {
    if (timer !== undefined) timers.cancel(timer)
    timer = undefined
    const waiting = extending === undefined ? none : waitingFor(pending, extending)
    const requests = waiting.size === 0 ? pending : pending.filter((item) => !waiting.has(item))
    if (requests.length === 0) return
    pending = [...waiting]
    send(requests)
  }

  const send = (requests: ReadonlyArray<Item>): void => {
    options.onSending(requests)
    underWay++
    const settled = attempt(() => outlet.subscription!.settle(requests))
    call(options, requests, watch === undefined ? settled : watched(watch, requests, settled), (failures, why) => {
      underWay--
      if (failures === undefined) {
        // The closing consumer has interrupted the call: the broker redelivers the messages.
        if (!options.isStopping()) report(requests, requests.map(interrupted(options.broker)))
      } else if (failures !== "died") report(requests, failures)
      // One message may have caused the adapter's defect, so send each alone.
      else if (requests.length > 1) for (const each of requests) send([each])
      else report(requests, [dead(requests[0]!, why)])
    })
  }

  const report = (requests: ReadonlyArray<Item>, failures: ReadonlyArray<SettleFailure>): void => {
    const failed = failures.length === 0 ? undefined : new Map(failures.map((each) => [each.delivery, each]))
    for (const item of requests) {
      const failure = failed?.get(item.delivery)
      if (failure === undefined) options.onSettled(item)
      else options.onFailed(item, failure)
    }
    options.onAnswered(failed === undefined || failed.size < requests.length)
  }

  return {
    settle: (item) => {
      pending.push(item)
      if (pending.length >= batch && batch > 1) flush()
      else if (wait > 0 && timer === undefined) waitForOthers()
    },
    flush,
    flushSoon: batch > 1 && wait > 0 ? () => {} : EventLoop.atEndOfJob(flush),
    extend: (items) => {
      if (extending !== undefined) return
      const began = timers.now()
      const unsettled = [...items].filter((item) => !isSettled(item) && !item.history.isLost)
      if (unsettled.length === 0) return options.onExtended(began)
      extending = new Set(unsettled)
      const asked = unsettled.map(({ delivery }) => ({ delivery }))
      const extended = attempt(() => outlet.subscription!.extend(asked.map(({ delivery }) => delivery)))
      call(options, asked, extended, (failures = [], why) => {
        extending = undefined
        const failed = failures === "died" ? asked.map((each) => dead(each, why)) : failures
        const found = new Map(failed.length === 0 ? [] : unsettled.map((item) => [item.delivery, item]))
        for (const failure of failed) {
          // `undefined` if a redelivery has replaced the lost delivery.
          const item = found.get(failure.delivery)
          if (item !== undefined && !isUnanswered(failure)) options.onLeaseLost(item, failure)
        }
        const unanswered = failed.filter(isUnanswered)
        const isOpen = unanswered.some(({ delivery }) => isUnbegun(found.get(delivery)))
        options.onExtended(isOpen || unanswered.length === asked.length ? undefined : began)
        flush()
      })
    },
    isIdle: () => pending.length === 0 && underWay === 0 && extending === undefined
  }
}

const none: ReadonlySet<Item> = new Set()

const isUnanswered = ({ fate }: SettleFailure): boolean => fate === "transient" || fate === "unknown"

/** Returns the items that must wait for an extension: of their own leases, or of an earlier message of their group. */
const waitingFor = (pending: ReadonlyArray<Item>, extending: ReadonlySet<Item>): ReadonlySet<Item> => {
  const groups = new Set<Group>()
  return new Set(
    pending.filter((item) => {
      const waits = extending.has(item) || (item.group !== undefined && groups.has(item.group))
      if (waits && item.group !== undefined) groups.add(item.group)
      return waits
    })
  )
}

const isUnbegun = (item: Item | undefined): boolean => item !== undefined && Lifecycle.isUnbegun(item.state)

const isSettled = ({ state: { _tag } }: Item): boolean => _tag === "Decided" || _tag === "Settling"

/** Returns the failure of a message whose settlement is a defect of the adapter. */
const died =
  (broker: string) =>
  ({ delivery }: Pick<Item, "delivery">, detail = "the adapter died"): SettleFailure => ({
    delivery,
    error: new BrokerError({
      broker,
      operation: "settle",
      reason: "Unsupported",
      detail,
      remedy: "Report this to the adapter's authors"
    }),
    fate: "rejected"
  })

/** Returns the failure of a message whose settlement an adapter has interrupted: it may have happened. */
const interrupted =
  (broker: string) =>
  ({ delivery }: Pick<Item, "delivery">): SettleFailure => ({
    delivery,
    error: new BrokerError({
      broker,
      operation: "settle",
      reason: "Timeout",
      detail: "the adapter interrupted the settlement; the outcome is unknown",
      remedy: "Report this to the adapter's authors"
    }),
    fate: "unknown"
  })

/** Calls the broker, and calls back with the failed deliveries; `undefined` if the call was interrupted. */
const call = (
  { fork }: Pick<Options, "fork">,
  concerned: ReadonlyArray<{ readonly delivery: Delivery }>,
  effect: Effect.Effect<ReadonlyArray<SettleFailure>>,
  done: (failures: ReadonlyArray<SettleFailure> | "died" | undefined, why?: string) => void
): void => {
  Direct.run(effect, fork, (exit) => {
    if (Exit.isSuccess(exit)) {
      return isAnswer(exit.value, concerned)
        ? done(exit.value)
        : done("died", "the adapter's settle did not return a list of the failed deliveries")
    }
    return Cause.hasInterruptsOnly(exit.cause)
      ? done(undefined)
      : done("died", `the adapter died: ${Cause.pretty(exit.cause)}`)
  })
}

/** Wraps settlements in telemetry, except for those that only show whether a transaction was committed. */
const watched = (
  watch: Watch,
  requests: ReadonlyArray<Item>,
  settled: Effect.Effect<ReadonlyArray<SettleFailure>>
): Effect.Effect<ReadonlyArray<SettleFailure>> => {
  const visible = requests.some(Lifecycle.isEnlisted)
    ? requests.filter((item) => !Lifecycle.isEnlisted(item))
    : requests
  return visible.length === 0 ? settled : watch.settle(visible, settled)
}

/** Calls a function of an adapter, and turns a thrown error into a defect. `Effect.suspend` does the same but costs more. */
const attempt = <A>(call: () => Effect.Effect<A>): Effect.Effect<A> => {
  try {
    return call()
  } catch (error) {
    return Effect.die(error)
  }
}

/**
 * Whether a value is a list of failures of these deliveries. A failure with any other delivery would make its message look
 * settled. Errors are recognised by their members, because an adapter may have loaded another copy of core.
 */
const isAnswer = (
  value: unknown,
  concerned: ReadonlyArray<{ readonly delivery: Delivery }>
): value is ReadonlyArray<SettleFailure> => {
  if (!Array.isArray(value)) return false
  if (value.length === 0) return true
  const requested = new Set<unknown>(concerned.map(({ delivery }) => delivery))
  return value.every(
    (each: Partial<SettleFailure> | null) =>
      each?.error?.reason !== undefined && each.fate !== undefined && requested.has(each.delivery)
  )
}
