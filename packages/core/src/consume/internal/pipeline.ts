/**
 * Connects the parts that a message passes, intake, batcher, worker pool and deliveries in flight, with the gates and
 * the credit that hold them back.
 *
 * Everything on a message's way is plain synchronous JavaScript; Effect is entered once for a handler that returns an
 * Effect, and once for the settlement.
 */
import type { BatchPolicy } from "../../policy/BatchPolicy.ts"
import type { Subscription } from "../../port/Broker.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import type { ConsumerBackoff } from "../../policy/ConsumerBackoff.ts"
import { DeadLetterBudgetExhausted } from "../../policy/DeadLetterBudget.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Watch } from "../../observe/Telemetry.ts"
import * as Batcher from "./batcher.ts"
import { coalesce } from "./coalesce.ts"
import * as Credit from "./credit.ts"
import * as Decider from "./decide.ts"
import * as Gates from "./gates.ts"
import * as Idleness from "./idleness.ts"
import * as InFlight from "./inFlight.ts"
import * as Intake from "./intake.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import type { RunHandler } from "./taskRunner.ts"
import * as WorkerPool from "./workerPool.ts"

export interface Options extends Runtime, Pick<Decider.Options, "queue" | "retry" | "retryDelay" | "budget"> {
  readonly codec: Intake.Decoder
  readonly batch: BatchPolicy
  /** Whether the handler takes one message at a time, so that each message of a batch is answered for alone. */
  readonly single: boolean
  /** Number of batches that may be in progress. */
  readonly concurrency: () => number
  /** Number of messages that may be in flight, of which `inProgress` have left their batcher; 0 when none is wanted. */
  readonly window: (inProgress: number) => number
  readonly backoff: ConsumerBackoff
  readonly subscription: Subscription
  readonly capabilities: Capabilities.Capabilities
  readonly runHandler: RunHandler
  readonly reporter: Reporter
  readonly watch: Watch | undefined
  /** Called when the consumer cannot go on. It has stopped taking messages. */
  readonly onFatal: (error: DeadLetterBudgetExhausted) => void
}

export interface Pipeline {
  readonly batcher: Batcher.Batcher
  readonly credit: Credit.Credit
  readonly gates: Gates.Gates
  readonly idleness: Idleness.Idleness
  readonly inFlight: InFlight.InFlight
  readonly intake: Intake.Intake
  readonly workerPool: WorkerPool.WorkerPool
  /** Number of messages that a handler has, or that are being settled. */
  readonly inProgress: () => number
  /** Takes as many messages as concurrency and window allow now. None are taken before the first call. */
  readonly refresh: () => void
  /** Gives back the messages that wait for their batch. */
  readonly giveBack: () => void
  /** Stops taking messages, and gives back those that no handler has seen. */
  readonly stop: () => void
}

export const make = (options: Options): Pipeline => {
  const { batch, capabilities, onFatal, queue, reporter, timers, window } = options
  const shared = { ...options, longest: Capabilities.longestRetry(capabilities) }
  let stopping = false

  const inProgress = (): number => inFlight.size() - batcher.size() - intake.decoding()

  const credit = Credit.make({
    subscription: options.subscription,
    timers,
    wanted: () => {
      if (stopping) return 0
      // Handlers may still have deliveries of a lost connection. They take room, though the broker does not count them.
      const room = Math.max(0, window(inProgress()) - inFlight.stale())
      return Math.min(room, gates.allowance())
    },
    onDefect: (error) => reporter.threw("the adapter's credit", error)
  })

  const refresh = (): void => {
    credit.update()
    workerPool.pump()
  }

  const giveBack = (): void => {
    for (const item of batcher.clear()) inFlight.settle(item, Settlement.Release())
    inFlight.flush()
  }

  const stop = (): void => {
    if (stopping) return
    stopping = true
    credit.update()
    gates.close()
    giveBack()
  }

  const gates = Gates.make(options.backoff, { ...options, onChange: refresh, onTransition: reporter.backoff })
  const batcher = Batcher.make(batch, timers, () => workerPool.pump())
  const idleness = Idleness.make(() => workerPool.size() === 0 && inFlight.size() === 0)
  const inFlight = InFlight.make({
    ...options,
    broker: capabilities.broker,
    batch: capabilities.settleBatch,
    wait: capabilities.settleWait,
    isLeased: capabilities.lease !== undefined,
    decider: Decider.make(shared),
    gates,
    onRemoved: () => {
      credit.update()
      idleness.check()
    },
    onExhausted: () => {
      if (stopping) return
      stop()
      onFatal(new DeadLetterBudgetExhausted({ queue, max: options.budget!.max }))
    }
  })
  const isStopping = () => stopping
  const workerPool = WorkerPool.make({ ...shared, batcher, inFlight, gates, isStopping, onBatchEnd: idleness.check })
  // Without a time to wait, a batch holds the messages that arrive in the same turn of the event loop.
  const isGathered = batch.maxBatchTimeout === 0 && batch.maxBatchSize > 1
  const onArrival = isGathered ? coalesce(options.yieldThen, workerPool.pump) : workerPool.pump
  const intake = Intake.make({
    ...options,
    inFlight,
    brokerGate: gates.broker,
    isWanted: () => !stopping && window(0) > 0,
    onDecoded: (item) => {
      batcher.push(item)
      onArrival()
    }
  })

  return { batcher, credit, gates, idleness, inFlight, intake, workerPool, inProgress, refresh, giveBack, stop }
}
