/**
 * The path of a message through a consumer: arrival, batch, run, decision, settlement.
 *
 * All of it is plain synchronous JavaScript, except a handler that returns an Effect, and the settlement.
 */
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { SubscribeOptions, Subscription } from "../../port/Broker.ts"
import type { Trouble } from "../../port/Trouble.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import type { ConsumerBackoff } from "../../policy/ConsumerBackoff.ts"
import { DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import type { ConsumerHealth } from "../../observe/Health.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import * as EventLoop from "../../runtime/EventLoop.ts"
import * as Arrival from "./arrival.ts"
import * as Batcher from "./batcher.ts"
import * as Decider from "../../policy/Decider.ts"
import * as Deliveries from "./deliveries.ts"
import * as Flow from "./flow.ts"
import * as Groups from "./groups.ts"
import type { Item, SubscriptionRef } from "./item.ts"
import * as Leases from "./leases.ts"
import type { Limiter } from "./limiter.ts"
import type * as Runs from "./runs.ts"
import type { Reporter } from "../../observe/Reporter.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import * as Scheduler from "./scheduler.ts"

/** The errors that stop a consumer. A RangeError is that of a wrong handler. */
export type Fatal = DeadLetterBudgetExhausted | RangeError

export interface Options extends HandlerRuntime, Pick<Decider.Options, "queue" | "retry" | "retryDelay" | "budget"> {
  readonly codec: Arrival.Decoder
  readonly batch: BatchPolicy
  /** Whether the handler gets one message at a time, so each message of a batch has a separate outcome. */
  readonly single: boolean
  /** Number of batches that may be in progress. */
  readonly concurrency: number | (() => number)
  readonly window: Flow.Window
  readonly backoff: ConsumerBackoff
  /** A running rate limit; `undefined` without one. */
  readonly limiter?: Pick<Limiter, "room" | "reserve" | "stop" | "longestWait"> | undefined
  /** The time limit of a handler, in milliseconds. */
  readonly handlerTimeout: number
  readonly capabilities: Capabilities.Capabilities
  readonly runHandler: Runs.RunHandler
  readonly reporter: Reporter
  readonly watch: Watch | undefined
  /** Called when the consumer cannot continue. It has stopped consuming. */
  readonly onFatal: (error: Fatal) => void
}

export interface Engine
  extends
    Pick<SubscribeOptions, "onDelivery" | "onReconnect" | "onRefused">,
    Pick<Scheduler.Scheduler, "interrupt" | "running">,
    Pick<Flow.Flow, "pause" | "resume"> {
  /** Sets the subscription that delivers to this engine. */
  readonly open: (subscription: Subscription) => void
  /** Updates the credit to what concurrency and window allow now. It is 0 until the first call. */
  readonly refresh: () => void
  /** Returns the messages that wait for their batch to the queue. */
  readonly giveBack: () => void
  /** Stops consuming, and returns the messages that no handler has seen. */
  readonly stop: () => void
  /** Calls back as soon as no batch is in progress and every delivery is settled. */
  readonly whenIdle: (callback: () => void) => void
  readonly stats: () => Omit<ConsumerHealth, "queue" | "state" | "error" | "trouble"> & {
    readonly trouble: Trouble | undefined
    /** Whether messages are in flight, nothing holds them back, and none has progressed for too long. */
    readonly isStalled: boolean
  }
}

/** Milliseconds without progress, beyond the time that handlers and batches may take, after which a consumer is stalled. */
const stallAfter = 60_000

/** Long, because it connects all parts of a consumer. */
export const make = (options: Options): Engine => {
  const { batch, capabilities, onFatal, queue, reporter, timers } = options
  const outlet: SubscriptionRef = { subscription: undefined }
  const jobTime = EventLoop.oncePerJob(timers.now)
  const progress = new Scheduler.Progress(() => scheduler.batches() > 0 || deliveries.counts.inFlight > 0)

  /** Resumes work after anything that held the consumer back has changed. */
  const wake = (): void => {
    deliveries.resume()
    flow.update()
    scheduler.pump()
  }

  const stop = (): void => {
    if (flow.isStopping()) return
    flow.close()
    // A codec may take longer than the drain timeout.
    giveBackAll([...batcher.clear(), ...arrival.clear()])
    groups.clear()
    options.limiter?.stop()
    deliveries.stop()
  }

  /** Whether nothing holds messages back, and none has progressed for longer than handlers and batches may take. */
  const isStalled = (): boolean => {
    const mayTake =
      stallAfter +
      (options.limiter?.longestWait ?? 0) +
      (scheduler.batches() > 0 ? options.handlerTimeout : 0) +
      (batcher.size() > 0 ? batch.maxBatchTimeout : 0)
    const isLate = deliveries.counts.inFlight > deliveries.counts.kept && timers.now() - progress.last > mayTake
    return isLate && flow.backoff().every(({ state }) => state === "running")
  }

  const fail = (error: Fatal): void => {
    if (flow.isStopping()) return
    stop()
    onFatal(error)
  }

  const giveBack = (): void => {
    giveBackAll(batcher.clear())
    groups.clear()
  }

  const giveBackAll = (items: ReadonlyArray<Item>): void => {
    for (const item of items) {
      // Later messages of its group are returned as well.
      Groups.follow(item)
      deliveries.settle(item, Settlement.Release())
    }
    deliveries.flush()
  }

  const flow = Flow.make({
    ...options,
    policy: options.backoff,
    outlet,
    onChange: wake,
    onTransition: reporter.backoff,
    onDefect: (error) => reporter.threw("the adapter's credit", error)
  })
  const batcher = Batcher.make({ ...options, policy: batch, onDue: () => scheduler.pump() })
  const groups = Groups.make({
    single: options.single,
    join: (item) => arrival.join(item),
    unwait: batcher.delete,
    giveBack: giveBackAll,
    keepsPlace: (settlement) => deliveries.keepsPlace(settlement)
  })
  const longest = Capabilities.longestRetry(capabilities)
  const deliveries = Deliveries.make({
    ...options,
    broker: capabilities.broker,
    batch: capabilities.settleBatch,
    wait: capabilities.settleWait,
    isLeased: capabilities.lease !== undefined,
    countsReleases: !capabilities.uncountedRelease,
    isBound: capabilities.connectionBound,
    decider: Decider.make({ ...options, longest }),
    flow,
    outlet,
    progress,
    onUnwaited: (item) => {
      arrival.forget(item)
      batcher.delete(item)
    },
    onEnded: groups.ended,
    onReplaced: groups.replaced,
    onExhausted: () => fail(new DeadLetterBudgetExhausted({ queue, max: options.budget!.max })),
    onExtended: (began) => leases?.extended(began)
  })
  const { lease } = capabilities
  const leases =
    lease &&
    Leases.make({
      duration: lease.duration,
      timers,
      extend: deliveries.extendLeases,
      onLast: () => scheduler.pump()
    })
  const shared = { ...options, longest, batcher, deliveries, flow, groups, progress, jobTime }
  const scheduler = Scheduler.make({
    ...shared,
    leases,
    onWrongHandler: fail
  })
  const { suspects } = scheduler
  const arrival = Arrival.make({ ...shared, suspects, onJoined: gathering(options, scheduler.pump) })
  const parts: Flow.Parts = { deliveries, batcher, groups, arrival, suspects }
  flow.connect(parts)

  return {
    onDelivery: arrival.onDelivery,
    onReconnect: (isGone = () => true) => flow.renew(() => deliveries.onReconnect(isGone)),
    onRefused: reporter.settleFailed,
    open: (subscription) => void (outlet.subscription = subscription),
    refresh: wake,
    giveBack,
    stop,
    pause: flow.pause,
    resume: flow.resume,
    interrupt: scheduler.interrupt,
    running: scheduler.running,
    whenIdle: progress.whenIdle,
    stats: () => ({
      buffered: Flow.unbegun(parts),
      inProgress: deliveries.counts.inFlight - Flow.unbegun(parts) - deliveries.counts.quarantined,
      quarantined: deliveries.counts.quarantined,
      backoff: flow.backoff(),
      isStalled: isStalled(),
      trouble: outlet.subscription?.trouble?.(),
      lastDelivery: arrival.lastDelivery(),
      lastSettled: deliveries.lastSettled()
    })
  }
}

/** With a `maxBatchTimeout` of 0, a batch gets the messages that arrive in the same turn of the event loop. */
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
