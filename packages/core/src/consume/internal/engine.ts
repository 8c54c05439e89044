/**
 * The way of a message through a consumer: arrival, batch, run, decision, settlement. Each is entered once, from the one
 * before it.
 *
 * Everything on this way is plain synchronous JavaScript; Effect is entered once for a handler that returns an Effect, and
 * once for the settlement.
 */
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { SubscribeOptions, Subscription } from "../../port/Broker.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import type { ConsumerBackoff } from "../../policy/ConsumerBackoff.ts"
import { DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import type { ConsumerHealth } from "../../observe/Health.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import * as Arrival from "./arrival.ts"
import * as Batcher from "./batcher.ts"
import * as Decider from "./decide.ts"
import * as Deliveries from "./deliveries.ts"
import * as Flow from "./flow.ts"
import * as Load from "./item.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import * as Workers from "./workers.ts"

export interface Options extends Runtime, Pick<Decider.Options, "queue" | "retry" | "retryDelay" | "budget"> {
  readonly codec: Arrival.Decoder
  readonly batch: BatchPolicy
  /** Whether the handler takes one message at a time, so that each message of a batch is answered for alone. */
  readonly single: boolean
  /** Number of batches that may be in progress. */
  readonly concurrency: () => number
  /** Number of messages that may be in flight, of which `begun` have left their batcher; 0 when none is wanted. */
  readonly window: (begun: number) => number
  readonly backoff: ConsumerBackoff
  /** Milliseconds that a handler has. */
  readonly handlerTimeout: number
  readonly subscription: Subscription
  readonly capabilities: Capabilities.Capabilities
  readonly runHandler: Workers.RunHandler
  readonly reporter: Reporter
  readonly watch: Watch | undefined
  /** Called when the consumer cannot go on. It has stopped taking messages. */
  readonly onFatal: (error: DeadLetterBudgetExhausted) => void
}

export interface Engine
  extends
    Pick<SubscribeOptions, "onDelivery" | "onReconnect">,
    Pick<Workers.Workers, "interrupt">,
    Pick<Flow.Flow, "pause" | "resume"> {
  /** Takes as many messages as concurrency and window allow now. None are taken before the first call. */
  readonly refresh: () => void
  /** Gives back the messages that wait for their batch. */
  readonly giveBack: () => void
  /** Stops taking messages, and gives back those that no handler has seen. */
  readonly stop: () => void
  /** Calls back as soon as no batch is in progress and every delivery is settled. */
  readonly whenIdle: (callback: () => void) => void
  readonly stats: () => Omit<ConsumerHealth, "queue" | "state" | "error"> & {
    /** Whether there is work, nothing holds it back, and nothing has moved for too long. */
    readonly isStalled: boolean
  }
}

/** Milliseconds without a movement, beyond what handlers and batches may take, after which a consumer is stalled. */
const stallAfter = 60_000

export const make = (options: Options): Engine => {
  const { batch, capabilities, onFatal, queue, reporter, timers, wallClock, window } = options
  const load = Load.noLoad()
  let isStopping = false
  let lastDelivery: number | undefined
  let lastMoved = timers.now()
  let whenIdle: Array<() => void> = []

  const onMoved = (): void => {
    lastMoved = timers.now()
    if (whenIdle.length > 0) checkIdle()
  }

  const checkIdle = (): void => {
    if (load.batches > 0 || load.inFlight > 0) return
    for (const callback of whenIdle.splice(0)) callback()
  }

  /** Goes on after something has held the consumer back. */
  const wake = (): void => {
    deliveries.recovery.resume()
    flow.update()
    workers.pump()
  }

  const stop = (): void => {
    if (isStopping) return
    isStopping = true
    flow.close()
    giveBack()
    deliveries.recovery.stop()
  }

  const giveBack = (): void => {
    for (const item of batcher.clear()) deliveries.settle(item, Settlement.Release())
    deliveries.flush()
  }

  const flow = Flow.make({
    ...options,
    policy: options.backoff,
    load,
    onChange: wake,
    onTransition: reporter.backoff,
    onDefect: (error) => reporter.threw("the adapter's credit", error)
  })
  const batcher = Batcher.make({ ...options, policy: batch, load, onDue: () => workers.pump() })
  const longest = Capabilities.longestRetry(capabilities)
  const deliveries = Deliveries.make({
    ...options,
    broker: capabilities.broker,
    batch: capabilities.settleBatch,
    wait: capabilities.settleWait,
    isLeased: capabilities.lease !== undefined,
    decider: Decider.make({ ...options, longest }),
    flow,
    load,
    onUnwaited: batcher.delete,
    onRemoved: () => {
      flow.update()
      onMoved()
    },
    onExhausted: () => {
      if (isStopping) return
      stop()
      onFatal(new DeadLetterBudgetExhausted({ queue, max: options.budget!.max }))
    }
  })
  const workers = Workers.make({
    ...options,
    longest,
    batcher,
    deliveries,
    flow,
    load,
    isStopping: () => isStopping,
    onMoved
  })
  const arrival = Arrival.make({
    ...options,
    batcher,
    deliveries,
    load,
    isWanted: () => !isStopping && window(0) > 0,
    onArrived: gathering(options, workers.pump)
  })

  if (capabilities.lease !== undefined) keepLeases(capabilities.lease.duration, timers, deliveries.extendLeases)

  const begun = (): number => load.inFlight - load.buffered - load.decoding

  const isStalled = (): boolean => {
    const mayTake =
      stallAfter + (load.batches > 0 ? options.handlerTimeout : 0) + (load.buffered > 0 ? batch.maxBatchTimeout : 0)
    return load.inFlight > load.kept && flow.backoff().length === 0 && timers.now() - lastMoved > mayTake
  }

  return {
    onDelivery: (delivery) => {
      lastDelivery = wallClock()
      if (load.inFlight === 0) lastMoved = timers.now()
      arrival.onDelivery(delivery, lastDelivery)
    },
    onReconnect: (isGone = () => true) => flow.renew(() => deliveries.onReconnect(isGone)),
    refresh: () => {
      flow.update()
      workers.pump()
    },
    giveBack,
    stop,
    pause: flow.pause,
    resume: flow.resume,
    interrupt: workers.interrupt,
    whenIdle: (callback) => {
      whenIdle.push(callback)
      checkIdle()
    },
    stats: () => ({
      buffered: load.buffered,
      inProgress: begun() - load.quarantined,
      quarantined: load.quarantined,
      backoff: flow.backoff(),
      lastDelivery,
      lastSettled: deliveries.lastSettled(),
      isStalled: isStalled()
    })
  }
}

/** Without a time to wait, a batch holds the messages that arrive in the same turn of the event loop. */
const gathering = ({ batch, yieldThen }: Pick<Options, "batch" | "yieldThen">, pump: () => void): (() => void) => {
  if (batch.maxBatchTimeout > 0 || batch.maxBatchSize === 1) return pump
  let isScheduled = false
  return () => {
    if (isScheduled) return
    isScheduled = true
    yieldThen(() => {
      isScheduled = false
      pump()
    })
  }
}

/** Extends the leases, which last `duration` milliseconds, three times within that time: two extensions may fail. */
const keepLeases = (duration: number, timers: Timers, extend: () => void): void => {
  timers.after(duration / 3, () => {
    extend()
    keepLeases(duration, timers, extend)
  })
}
