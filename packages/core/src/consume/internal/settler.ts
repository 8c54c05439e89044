/**
 * Sends settlements to the broker: in batches where the broker takes batches, and never while a lease extension of the
 * same delivery is under way.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Direct from "../../runtime/Direct.ts"
import type { SettleFailure, SettleRequest } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import * as EventLoop from "../../runtime/EventLoop.ts"
import type { Timer } from "../../runtime/Timers.ts"
import type { Item, SubscriptionRef } from "./item.ts"
import type { Runtime } from "./runtime.ts"

export interface Settler {
  /** Adds a settlement to those that wait, which are sent when they fill a batch or have waited long enough. */
  readonly settle: (item: Item, settlement: Settlement) => void
  /** Sends all settlements that wait. */
  readonly flush: () => void
  /**
   * Sends them at the end of the current job of the event loop, so that handlers which end together are settled together.
   * Where the broker settles in batches and asks for a wait, that wait decides instead.
   */
  readonly flushSoon: () => void
  /** Extends the leases of those items that are not lost and not being settled. */
  readonly extend: (items: Iterable<Item>) => void
  /** True when no settlement waits and no call of the broker is under way. */
  readonly isIdle: () => boolean
}

export interface Options extends Pick<Runtime, "fork" | "timers"> {
  /** The broker's name, for errors. */
  readonly broker: string
  readonly outlet: SubscriptionRef
  /** Settlements that the broker takes in one call. */
  readonly batch: number
  /** Milliseconds that a settlement may wait for others; 0: it is sent with the next flush. */
  readonly wait: number
  readonly watch: Watch | undefined
}

export interface Callbacks {
  readonly onSettled: (item: Item, settlement: Settlement) => void
  readonly onFailed: (item: Item, settlement: Settlement, failure: SettleFailure) => void
  readonly onLeaseLost: (item: Item, failure: SettleFailure) => void
  /** Called before a call of the broker, with one of its items. */
  readonly onSending: (item: Item) => unknown
  /**
   * Called once for each call of the broker, after `onSettled` or `onFailed` for each of its items; with whether it settled
   * one.
   */
  readonly onAnswered: (hasSettled: boolean) => void
  /** Called once for each extension, after `onLeaseLost` for each of its items that are lost. */
  readonly onExtended: () => void
}

/** An item with its settlement is itself the request for it, which saves an object for each message. */
type DecidedItem = Item & SettleRequest

/**
 * Settlements that wait, and calls of the broker that are under way.
 *
 * Long, because whatever settles or extends must see both.
 */
export const make = (options: Options & Callbacks): Settler => {
  const { batch, outlet, timers, wait, watch } = options
  const dead = died(options.broker)
  let pending: Array<DecidedItem> = []
  /** Those whose lease is being extended; `undefined` when none is. */
  let extending: ReadonlySet<Item> | undefined
  let underWay = 0
  let timer: Timer | undefined

  /** A batch that is full by the end of the job needs no timer. */
  const waitForOthers = EventLoop.atEndOfJob(() => {
    if (pending.length > 0) timer ??= timers.after(wait, flush)
  })

  const flush = (): void => {
    if (timer !== undefined) timers.cancel(timer)
    timer = undefined
    const extended = extending
    const requests = extended === undefined ? pending : pending.filter((item) => !extended.has(item))
    if (requests.length === 0) return
    pending = extended === undefined ? [] : pending.filter((item) => extended.has(item))
    send(requests)
  }

  const send = (requests: ReadonlyArray<DecidedItem>): void => {
    options.onSending(requests[0]!)
    for (const item of requests) item.stage = "settling"
    underWay++
    const settled = attempt(() => outlet.subscription!.settle(requests))
    call(options, requests, watch === undefined ? settled : watch.settle(requests, settled), (failures, why) => {
      underWay--
      // An interrupted call was cut off by the consumer's own end: the broker brings the deliveries back.
      if (failures === undefined) return
      if (failures !== "died") report(requests, failures)
      // One message may have made the adapter die, so that each is sent alone.
      else if (requests.length > 1) for (const each of requests) send([each])
      else report(requests, [dead(requests[0]!, why)])
    })
  }

  const report = (requests: ReadonlyArray<DecidedItem>, failures: ReadonlyArray<SettleFailure>): void => {
    const failed = failures.length === 0 ? undefined : new Map(failures.map((each) => [each.delivery, each]))
    for (const item of requests) {
      const failure = failed?.get(item.delivery)
      if (failure === undefined) options.onSettled(item, item.settlement)
      else options.onFailed(item, item.settlement, failure)
    }
    options.onAnswered(failed === undefined || failed.size < requests.length)
  }

  return {
    settle: (item, settlement) => {
      item.settlement = settlement
      item.stage = "decided"
      pending.push(item as DecidedItem) // The line above decided it.
      if (pending.length >= batch && batch > 1) flush()
      else if (wait > 0 && timer === undefined) waitForOthers()
    },
    flush,
    flushSoon: batch > 1 && wait > 0 ? () => {} : EventLoop.atEndOfJob(flush),
    extend: (items) => {
      const unsettled = [...items].filter((item) => !isSettled(item) && !item.isLost)
      if (extending !== undefined || unsettled.length === 0) return
      extending = new Set(unsettled)
      const asked = unsettled.map(({ delivery }) => ({ delivery }))
      const extended = attempt(() => outlet.subscription!.extend(asked.map(({ delivery }) => delivery)))
      call(options, asked, extended, (failures = [], why) => {
        extending = undefined
        const failed = failures === "died" ? asked.map((each) => dead(each, why)) : failures
        const found = new Map(failed.length === 0 ? [] : unsettled.map((item) => [item.delivery, item]))
        for (const failure of failed) {
          // None is found where a redelivery has taken the place of the lost one.
          const item = found.get(failure.delivery)
          if (item !== undefined) options.onLeaseLost(item, failure)
        }
        options.onExtended()
        flush()
      })
    },
    isIdle: () => pending.length === 0 && underWay === 0 && extending === undefined
  }
}

const isSettled = ({ stage }: Item): boolean => stage === "decided" || stage === "settling"

/** The failure of a message that brings out a defect of the adapter. */
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

/**
 * Runs a call of the broker, without a fiber where that is direct, and calls back with the deliveries for which it failed;
 * `undefined` when the call was interrupted.
 */
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
        : done("died", "the adapter did not answer with the deliveries that could not be settled")
    }
    return Cause.hasInterruptsOnly(exit.cause)
      ? done(undefined)
      : done("died", `the adapter died: ${Cause.pretty(exit.cause)}`)
  })
}

/** Calls a function of an adapter. One that throws has died; `Effect.suspend` would do the same at a higher cost. */
const attempt = <A>(call: () => Effect.Effect<A>): Effect.Effect<A> => {
  try {
    return call()
  } catch (error) {
    return Effect.die(error)
  }
}

/**
 * True for failures of the deliveries concerned: a failure of another one would leave its own message taken for settled.
 * Errors are known by their members, for an adapter may have a core of its own.
 */
const isAnswer = (
  value: unknown,
  concerned: ReadonlyArray<{ readonly delivery: Delivery }>
): value is ReadonlyArray<SettleFailure> => {
  if (!Array.isArray(value)) return false
  if (value.length === 0) return true
  const known = new Set<unknown>(concerned.map(({ delivery }) => delivery))
  return value.every(
    (each: Partial<SettleFailure> | null) =>
      each?.error?.reason !== undefined && each.fate !== undefined && known.has(each.delivery)
  )
}
