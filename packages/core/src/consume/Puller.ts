/**
 * Pull consumers: your code pulls a batch when it has capacity, and settles it later.
 *
 * When to use: when your code sets the pace, for example in a cron job or in a request that asks for work. A pulled
 * batch has a lease: the time to settle it. When the lease ends, unsettled messages count as failed, and the policy
 * retries them as after a handler timeout.
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
import * as Start from "./internal/start.ts"
import type { PulledBatch } from "./internal/pulls.ts"
import * as Pulls from "./internal/pulls.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import * as Timers from "../runtime/Timers.ts"

export { LeaseExpired, type PulledBatch } from "./internal/pulls.ts"

/** The options of a puller: a consumer's options, except those that limit handlers. */
export interface Options extends ConsumerOptions.Policies, Pulling {}

/** The options of a puller, except its policies. */
export interface Pulling extends ConsumerOptions.Intake {
  /**
   * How long a pulled batch may stay unsettled. Range: 1 ms to 12 hours; a number means milliseconds. Default: 30
   * seconds.
   */
  readonly lease?: Delay.DurationInput | undefined
  /** Largest number of unsettled batches; further pulls wait. Range: 1 to 1,000. Default: 10. */
  readonly maxOpen?: number | undefined
}

/** The options of one pull. */
export interface PullOptions {
  /** Longest wait for the first message. Range: 0 to 24 hours; a number means milliseconds. Default: 5 seconds. */
  readonly wait?: Delay.DurationInput | undefined
}

/** The error of a pull whose puller was drained or has stopped. */
export class PullerDrained extends Data.TaggedError("PullerDrained")<{ readonly queue: string }> {
  override get message() {
    return `pull: the puller of ${this.queue} was drained. Make another puller`
  }
}

/** A pull consumer. When its scope closes, it stops and waits for its unsettled batches. */
export interface Puller<A> extends Pick<
  Start.Consumer,
  "queue" | "stats" | "health" | "pause" | "resume" | "drain" | "done"
> {
  /**
   * Returns the next batch; `undefined` if no message arrives in time, or if the puller is drained during the wait. An
   * interrupted pull returns its messages to the queue.
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
  shareLimits: _shareLimits,
  ...shared
} = ConsumerOptions.kinds

/** The kind of each option of a puller, by name. */
export const kinds: OptionNames.Of<Options> = {
  ...shared,
  lease: Delay.kind(1, 12 * 60 * 60_000),
  maxOpen: OptionKind.whole(1, 1000)
}

/** The kind of each option of one pull, by name. */
export const pullKinds: OptionNames.Of<PullOptions> = { wait: Delay.kind(0, Delay.max) }

/**
 * Makes a puller. When the scope closes, the puller stops and waits for its unsettled batches.
 *
 * A puller fetches messages only while a pull waits. The batch policy sets the size of batches; by default, a batch has
 * up to 10 messages that arrive together. A puller ignores the retry policy's `immediate`, because it has no handler to
 * rerun.
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
): Effect.Effect<Puller<A>, Start.StartError, Broker | Scope.Scope> =>
  OptionNames.orDie(OptionNames.refusal("Puller.make", options, kinds, queue), () =>
    open(queue, ConsumerOptions.over(queue, options, kinds))
  )

const open = <A>(
  queue: QueueDefinition.Input<A, never>,
  { lease: given = 30_000, maxOpen = 10, ...options }: Options
): Effect.Effect<Puller<A>, Start.StartError, Broker | Scope.Scope> =>
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
        // Without a waiting pull, the messages are for other consumers.
        if (pulls.size() === 0) engine.giveBack()
        engine.refresh()
      }
    })
    const openBatches = Pulls.openBatches(timers, lease, () => engine.refresh())

    /** Number of waiting pulls that may open a batch. */
    const wanted = (): number => Math.min(pulls.size(), maxOpen - openBatches.size())

    const { consumer, engine } = yield* Start.make<never>({
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

/** Fails when the broker's lease ends before the puller's. For a consumer, `Feasibility` checks `handlerTimeout` instead. */
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
          detail: `a pulled batch may stay unsettled for ${Delay.format(lease)}, but the broker's lease ends after ${Delay.format(native.max)}`,
          remedy: `Set lease below ${Delay.format(native.max)}`
        })
      )
