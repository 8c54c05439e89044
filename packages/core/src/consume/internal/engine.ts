/**
 * The one composition of a subscription with the policies: what arrives is batched, run, judged and settled.
 *
 * Everything on the way of a message is plain synchronous JavaScript; Effect is entered once for the handler and once
 * for the settlement.
 */
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { SubscribeOptions, Subscription } from "../../port/Broker.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import type { Codec } from "../../message/Codec.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import { type DeadLetterBudget, DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import type { Delay } from "../../message/Delay.ts"
import type { ConsumerHealth } from "../../observe/Health.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import * as Arrivals from "./intake.ts"
import * as Batcher from "./batcher.ts"
import * as Gates from "./gates.ts"
import * as Judge from "./decide.ts"
import * as Outbox from "./inFlight.ts"
import type { Reporter } from "./reporter.ts"
import * as Turn from "./turnClock.ts"
import * as Workshop from "./workerPool.ts"

export interface Options {
  readonly subscription: Subscription
  readonly queue: string
  readonly codec: Codec<any>
  readonly retry: RetryPolicy
  readonly retryDelay: Delay | undefined
  readonly batch: BatchPolicy
  /** Whether the messages of a batch are answered for one by one. */
  readonly single: boolean
  /** Batches that may be in progress. */
  readonly concurrency: () => number
  /** Messages that may be in our hands, `inProgress` of which have left their buffer; 0 when none is wanted. */
  readonly window: (inProgress: number) => number
  readonly backoff: ConsumerBackoff.ConsumerBackoff
  readonly budget: DeadLetterBudget | undefined
  readonly capabilities: Capabilities.Capabilities
  readonly runner: Workshop.Runner
  readonly timers: Timers
  readonly fork: (effect: Effect.Effect<unknown, unknown>) => Fiber.Fiber<unknown, unknown>
  /** Gives the event loop a turn, then calls back. */
  readonly yieldThen: (resume: () => void) => void
  readonly random: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  readonly reporter: Reporter
  readonly watch: Watch | undefined
  /** The consumer cannot go on; it has stopped its intake. */
  readonly onFatal: (error: DeadLetterBudgetExhausted) => void
}

export interface Engine extends Pick<SubscribeOptions, "onDelivery" | "onReconnect"> {
  /** Takes what concurrency and window allow now. Nothing is taken before the first call. */
  readonly refresh: () => void
  /** Gives back what waits for its batch. */
  readonly giveBack: () => void
  /** Takes no more, and gives back what no handler has seen. */
  readonly stopIntake: () => void
  /** Interrupts what is in progress, and gives back what has no verdict. */
  readonly interrupt: () => Workshop.Interrupted
  /** Calls back as soon as nothing is in progress and everything is settled. */
  readonly whenIdle: (callback: () => void) => void
  readonly stats: () => Omit<ConsumerHealth, "queue" | "state" | "error">
}

export const make = (options: Options): Engine => {
  const { batch, capabilities, queue, reporter, subscription, timers, yieldThen } = options
  const longest = Capabilities.longestRetry(capabilities)
  let credit = 0
  let stopping = false
  let gathering = false
  let reconnecting = false
  let idleWaiters: Array<() => void> = []
  let lastDelivery: number | undefined
  const arrival = Turn.clock(options.wallClock)

  const inProgress = (): number => outbox.size() - batcher.size() - arrivals.decoding()

  const updateCredit = (): void => {
    // What handlers still have of a lost connection takes its room, though the broker does not know it.
    const room = Math.max(0, options.window(inProgress()) - outbox.stale())
    const wanted = stopping ? 0 : Math.min(room, gates.allowance())
    if (wanted === credit || reconnecting) return
    credit = wanted
    subscription.credit(wanted)
  }

  const refresh = (): void => {
    updateCredit()
    workshop.pump()
  }

  const gates = Gates.make(options.backoff, { ...options, onChange: refresh, onTransition: reporter.backoff })

  const checkIdle = (): void => {
    if (idleWaiters.length === 0 || workshop.size() > 0 || outbox.size() > 0) return
    const waiters = idleWaiters
    idleWaiters = []
    for (const resume of waiters) resume()
  }

  const batcher = Batcher.make(batch, timers, () => workshop.pump())

  const outbox = Outbox.make({
    broker: capabilities.broker,
    subscription,
    fork: options.fork,
    timers,
    batch: capabilities.settleBatch,
    wait: capabilities.settleWait,
    watch: options.watch,
    isLeased: capabilities.lease !== undefined,
    judge: Judge.make({ ...options, longest }),
    wallClock: options.wallClock,
    handlerGate: gates.handler,
    brokerGate: gates.broker,
    reporter,
    onGone: () => {
      updateCredit()
      checkIdle()
    },
    onExhausted: () => {
      if (stopping) return
      stopIntake()
      options.onFatal(new DeadLetterBudgetExhausted({ queue, max: options.budget!.max }))
    }
  })

  const workshop = Workshop.make({
    ...options,
    longest,
    batcher,
    outbox,
    gates,
    isStopping: () => stopping,
    onBatchEnd: checkIdle
  })

  /** With no time to wait, a batch is what is there: what arrives in the same turn of the event loop. */
  const gather = (): void => {
    if (gathering) return
    gathering = true
    yieldThen(() => {
      gathering = false
      workshop.pump()
    })
  }
  const onArrival = batch.maxBatchTimeout === 0 && batch.maxBatchSize > 1 ? gather : workshop.pump

  const arrivals = Arrivals.make({
    ...options,
    outbox,
    brokerGate: gates.broker,
    isWanted: () => !stopping && options.window(0) > 0,
    onDecoded: (item) => {
      batcher.push(item)
      onArrival()
    }
  })

  const keepLeases = (duration: number): void => {
    timers.after(duration / 3, () => {
      outbox.extendLeases()
      keepLeases(duration)
    })
  }
  if (capabilities.lease !== undefined) keepLeases(capabilities.lease.duration)

  const stopIntake = (): void => {
    if (stopping) return
    stopping = true
    updateCredit()
    gates.close()
    giveBack()
  }

  const giveBack = (): void => {
    for (const item of batcher.clear()) outbox.settle(item, Settlement.Release())
    outbox.flush()
  }

  return {
    onDelivery: (delivery) => {
      lastDelivery = arrival()
      arrivals.onDelivery(delivery, lastDelivery)
    },
    onReconnect: (isGone = () => true) => {
      reconnecting = true
      arrivals.onReconnect(isGone)
      // What the lost connection delivered and was not begun is delivered again by the new one.
      for (const item of batcher.clear()) {
        if (isGone(item.delivery)) outbox.forget(item)
        else batcher.push(item)
      }
      outbox.onReconnect(isGone)
      gates.signal({ _tag: "Reconnected" })
      reconnecting = false
      // Said again, whatever it was, and only now: before every gate knew, it could be too much.
      credit = -1
      updateCredit()
    },
    refresh,
    giveBack,
    stopIntake,
    interrupt: workshop.interrupt,
    whenIdle: (callback) => {
      idleWaiters.push(callback)
      checkIdle()
    },
    stats: () => ({
      buffered: batcher.size(),
      inProgress: inProgress(),
      backoff: gates.backoff(),
      lastDelivery,
      lastSettled: outbox.lastSettled()
    })
  }
}
