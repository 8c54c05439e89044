/**
 * Pull consumers: take a batch when there is room for it, work on it anywhere, settle it later.
 *
 * When to use: when something else decides the pace, such as a request that asks for work, or a cron job. A pulled
 * batch has a lease. When the lease ends, the messages that have not been settled count as failed and are retried under
 * the policy, as if a handler had timed out.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as BatchPolicy from "../policy/BatchPolicy.ts"
import { Broker } from "../port/Broker.ts"
import type { Capabilities } from "../port/Capabilities.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as ConsumerOptions from "./ConsumerOptions.ts"
import * as Delay from "../message/Delay.ts"
import * as Lifecycle from "./internal/lifecycle.ts"
import * as OpenBatches from "./internal/openBatches.ts"
import type { PulledBatch } from "./internal/openBatches.ts"
import * as Pulls from "./internal/pulls.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import * as Timers from "../runtime/Timers.ts"

export { LeaseExpired, type PulledBatch } from "./internal/openBatches.ts"

/** Options of a puller: those of a consumer, except for the time and the number of its handlers. */
export interface Options extends ConsumerOptions.Policies, Pulling {}

/** Options of a puller, but for its policies. */
export interface Pulling extends ConsumerOptions.Intake {
  /** How long a pulled batch may stay unsettled, 1 ms to 12 hours; a number counts milliseconds. Default 30 seconds. */
  readonly lease?: Delay.DurationInput | undefined
  /** Number of batches that may be pulled and unsettled at a time, 1 to 1,000; further pulls wait. Default 10. */
  readonly maxOpen?: number | undefined
}

/** Options of one pull. */
export interface PullOptions {
  /** How long to wait for a first message, 0 to 24 hours; a number counts milliseconds. Default 5 seconds. */
  readonly wait?: Delay.DurationInput | undefined
}

/** The error of a pull from a puller that was drained, or has stopped itself. */
export class PullerDrained extends Data.TaggedError("PullerDrained")<{ readonly queue: string }> {
  override get message() {
    return `pull: the puller of ${this.queue} was drained. Make another one`
  }
}

/** A pull consumer. It drains when the scope that it was made in closes. */
export interface Puller<A> extends Pick<
  Lifecycle.Consumer,
  "queue" | "stats" | "health" | "pause" | "resume" | "drain" | "done"
> {
  /**
   * Takes the next batch; succeeds with `undefined` when no message arrives in time, or when the puller is drained
   * meanwhile. The messages that an interrupted pull has gathered go back to the queue.
   *
   * @throws RangeError when an option is unknown, or `wait` is not 0 to 24 hours
   */
  readonly pull: (options?: PullOptions) => Effect.Effect<PulledBatch<A> | undefined, PullerDrained>
}

const {
  concurrency: _concurrency,
  handlerTimeout: _handlerTimeout,
  prefetch: _prefetch,
  rateLimit: _rateLimit,
  ...shared
} = ConsumerOptions.kinds

/** All options and their kinds, by which wrong ones are found. */
export const kinds: OptionNames.Of<Options> = {
  ...shared,
  lease: Delay.kind(1, 12 * 60 * 60_000),
  maxOpen: OptionKind.whole(1, 1000)
}

/** The options of one pull and their kinds. */
export const pullKinds: OptionNames.Of<PullOptions> = { wait: Delay.kind(0, Delay.max) }

/**
 * Makes a puller; it drains when the scope closes.
 *
 * It takes nothing from the queue before the first pull. The batch policy decides how batches are filled; by default with up
 * to 10 messages that arrive together. The policy's `immediate` is ignored: there is no handler to run again.
 *
 * @throws RangeError when an option is out of range
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer, Puller } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const producer = yield* Producer.make("invoices")
 *   yield* producer.send({ number: 1 })
 *   const puller = yield* Puller.make("invoices", { lease: "1 minute" })
 *   const batch = yield* puller.pull({ wait: "1 second" })
 *   const bodies = batch?.messages.map(({ body }) => body)
 *   batch?.settle()
 *   return bodies
 * }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
 *
 * await Effect.runPromise(program) // => [{ number: 1 }]
 * ```
 */
export const make = <
  A = any // A queue that is given by name has unchecked bodies.
>(
  queue: QueueDefinition.Input<A, never>,
  options: Options = {}
): Effect.Effect<Puller<A>, Lifecycle.StartError, Broker | Scope.Scope> =>
  OptionNames.orDie(OptionNames.refusal("Puller.make", options, kinds, queue), () => open(queue, options))

const open = <A>(
  queue: QueueDefinition.Input<A, never>,
  { lease: given = 30_000, maxOpen = 10, ...options }: Options
): Effect.Effect<Puller<A>, Lifecycle.StartError, Broker | Scope.Scope> =>
  Effect.gen(function* () {
    const batch = options.batch ?? BatchPolicy.make({ maxBatchTimeout: 0 })
    const lease = Delay.parse("lease", given)
    const definition = QueueDefinition.from(queue, "Puller.make")
    yield* verifyLease(lease, (yield* Broker).capabilities, definition.name)
    const timers = yield* Timers.make
    let stopped = false

    const pulls = Pulls.make<PulledBatch<A>>({
      timers,
      maxBatchTimeout: batch.maxBatchTimeout,
      isFilling: () => engine.stats().buffered > 0,
      onChange: () => {
        // No pull waits any more: leave the messages to other consumers.
        if (pulls.size() === 0) engine.giveBack()
        engine.refresh()
      }
    })
    const openBatches = OpenBatches.make(timers, lease, () => engine.refresh())

    /** Number of pulls that wait and may get a batch. */
    const wanted = (): number => Math.min(pulls.size(), maxOpen - openBatches.size())

    const { consumer, engine } = yield* Lifecycle.make<never>({
      queue: definition,
      options: {
        ...options,
        retry: { ...(options.retry ?? RetryPolicy.make()), immediate: 0 },
        handlerTimeout: lease
      },
      batch,
      single: false,
      runs: "pulled batch",
      concurrency: () => openBatches.size() + wanted(),
      window: (begun) => (wanted() === 0 ? 0 : begun + wanted() * batch.maxBatchSize),
      runHandler: () => (task, done) => {
        const opened = openBatches.open(task, done)
        pulls.serve(opened.batch as PulledBatch<A>) // The queue's codec has made the bodies.
        return opened
      }
    })
    const { done, drain, health, pause, queue: name, resume, stats } = consumer

    const stop = Effect.sync(() => {
      stopped = true
      pulls.stop()
    })
    yield* Effect.addFinalizer(() => stop)
    yield* Effect.forkScoped(Effect.ensuring(Effect.ignore(done), stop))

    return {
      queue: name,
      stats,
      health,
      pause,
      resume,
      done,
      drain: (timeout) => Effect.andThen(stop, drain(timeout)),
      pull: (pullOptions = {}) =>
        OptionNames.orDie(OptionNames.refusal("Puller.pull", pullOptions, pullKinds, name), () => {
          const millis = Delay.parse("wait", pullOptions.wait ?? 5000)
          return Effect.suspend(() => (stopped ? Effect.fail(new PullerDrained({ queue: name })) : pulls.wait(millis)))
        })
    }
  })

/** Fails when the broker's lease ends before the puller's. A consumer has this check for its `handlerTimeout`. */
const verifyLease = (
  lease: number,
  { broker, lease: native }: Capabilities,
  queue: string
): Effect.Effect<void, ConfigurationError> =>
  native === undefined || lease <= native.duration || lease < native.max
    ? Effect.void
    : Effect.fail(
        new ConfigurationError({
          field: "lease",
          queue,
          broker,
          detail: `a batch may stay out for ${Delay.format(lease)}, the broker's lease ends after ${Delay.format(native.max)}`,
          remedy: `Set lease below ${Delay.format(native.max)}`
        })
      )
