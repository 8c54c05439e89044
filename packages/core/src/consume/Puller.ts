/**
 * Pull consumers: take a batch when there is room for it, work on it anywhere, settle it later.
 *
 * When to use: when something else decides the pace, such as a request that asks for work, or a cron job. A pulled batch
 * is ours for the length of its lease; what has not been settled by then counts as failed and is retried under the
 * policy, as if a handler had timed out.
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
import type { Batch } from "../message/Handler.ts"
import * as Lifecycle from "./internal/lifecycle.ts"
import type { Outcome } from "./internal/dispatch.ts"
import type { RunHandler } from "./internal/taskRunner.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import * as Timers from "../adapter-kit/Timers.ts"

export interface Options extends Omit<ConsumerOptions.Options, "concurrency" | "handlerTimeout"> {
  /** How long a pulled batch may stay unsettled, 1 ms to 12 hours. Default 30 seconds. */
  readonly lease?: Delay.Input | undefined
  /** Batches that may be pulled and unsettled at a time, 1 to 1,000; further pulls wait. Default 10. */
  readonly maxOpen?: number | undefined
}

export interface PullOptions {
  /** How long to wait for a first message, 0 to 24 hours. Default 5 seconds. */
  readonly wait?: Delay.Input | undefined
}

/** A batch in our hands. `ack`, `retry`, `ackAll` and `retryAll` work as in a handler. */
export interface PulledBatch<A> extends Batch<A> {
  /** Ends the batch well: what has no verdict is acked. */
  readonly settle: () => void
  /** Ends the batch badly: what has no verdict is retried, or dead-lettered, as the error and the policy say. */
  readonly fail: (error: unknown) => void
  /** Ends the batch untouched: what has no verdict goes back to the queue, uncounted where the broker can. */
  readonly release: () => void
}

/** The error of a batch that was not settled in time. */
export class LeaseExpired extends Data.TaggedError("LeaseExpired")<{ readonly lease: number }> {
  override get message() {
    return `lease: the pulled batch was not settled within ${Delay.format(this.lease)}`
  }
}

/** A pull that came after the puller was drained, or had stopped itself. */
export class PullerDrained extends Data.TaggedError("PullerDrained")<{ readonly queue: string }> {
  override get message() {
    return `pull: the puller of ${this.queue} was drained. Make another one`
  }
}

export interface Puller<A> extends Pick<Lifecycle.Consumer, "queue" | "stats" | "health" | "drain" | "done"> {
  /**
   * The next batch; `undefined` when no message came in time, or when the puller is drained meanwhile. What an
   * interrupted pull had gathered goes back to the queue.
   */
  readonly pull: (options?: PullOptions) => Effect.Effect<PulledBatch<A> | undefined, PullerDrained>
}

const { concurrency: _concurrency, handlerTimeout: _handlerTimeout, ...shared } = ConsumerOptions.names
const names: OptionNames.Of<Options> = { ...shared, lease: true, maxOpen: true }

/**
 * Makes a puller; it drains when the scope closes.
 *
 * Takes nothing from the queue until somebody pulls. Batches are filled as the batch policy says (default 10 messages,
 * or what is there at once). The policy's `immediate` does not matter: there is no handler to run again.
 *
 * @throws RangeError when an option is out of its range
 */
export const make = <A = any>(
  queue: QueueDefinition.Input<A>,
  options: Options = {}
): Effect.Effect<Puller<A>, Lifecycle.StartError, Broker | Scope.Scope> =>
  Effect.gen(function* () {
    OptionNames.check("Puller.make", options, names)
    const { maxOpen = 10 } = options
    if (!(Number.isSafeInteger(maxOpen) && maxOpen >= 1 && maxOpen <= 1000)) {
      throw new RangeError(`Puller.make: maxOpen must be a whole number from 1 to 1000, got ${maxOpen}`)
    }
    const batch = options.batch ?? BatchPolicy.make({ maxBatchTimeout: 0 })
    const lease = Delay.constrain("Puller.make: lease", options.lease ?? 30_000, 1, 12 * 60 * 60_000)
    yield* verify(lease, (yield* Broker).capabilities, QueueDefinition.from(queue).name)
    const timers = yield* Timers.make
    const waiting: Array<(batch: PulledBatch<A> | undefined) => void> = []
    let open = 0
    let stopped = false

    /** Batches that somebody waits for and may have. */
    const wanted = (): number => Math.min(waiting.length, maxOpen - open)

    const runHandler: RunHandler = (task, done) => {
      let ended = false
      const end = (outcome: Outcome): void => {
        if (ended) return
        ended = true
        timers.cancel(timer)
        open--
        done(outcome)
        engine.refresh()
      }
      const timer = timers.after(lease, () => end({ _tag: "Failed", error: new LeaseExpired({ lease }) }))
      open++
      const take = waiting.shift()!
      take({
        ...(task.toBatch() as Batch<A>),
        settle: () => end({ _tag: "Succeeded" }),
        fail: (error) => end({ _tag: "Failed", error }),
        release: () => end({ _tag: "Interrupted" })
      })
      return { interrupt: () => end({ _tag: "Interrupted" }) }
    }

    const { consumer, engine } = yield* Lifecycle.make<never>({
      queue: QueueDefinition.from(queue),
      options: {
        ...options,
        retry: { ...(options.retry ?? RetryPolicy.make()), immediate: 0 },
        handlerTimeout: lease
      },
      batch,
      single: false,
      concurrency: () => open + wanted(),
      window: (inProgress) => (wanted() === 0 ? 0 : inProgress + wanted() * batch.maxBatchSize),
      maxCredit: batch.maxBatchSize * maxOpen,
      runHandler: () => runHandler
    })

    const next = (wait: number): Effect.Effect<PulledBatch<A> | undefined> =>
      Effect.callback((resume) => {
        const leave = (): void => {
          timers.cancel(timer)
          const index = waiting.indexOf(take)
          if (index >= 0) waiting.splice(index, 1)
          // What has come for nobody is for other consumers.
          if (waiting.length === 0) engine.giveBack()
          engine.refresh()
        }
        const take = (pulled: PulledBatch<A> | undefined): void => {
          leave()
          resume(Effect.succeed(pulled))
        }
        const giveUp = () => take(undefined)
        /** The wait is for a first message: once it has come, its batch may take its time to fill. */
        const onTimeout = (): void => {
          if (waiting[0] !== take || engine.stats().buffered === 0) return giveUp()
          timer = timers.after(batch.maxBatchTimeout, giveUp)
        }
        let timer = timers.after(wait, onTimeout)
        waiting.push(take)
        engine.refresh()
        return Effect.sync(leave)
      })

    const stop = Effect.sync(() => {
      stopped = true
      for (const take of waiting.splice(0)) take(undefined)
    })
    yield* Effect.addFinalizer(() => stop)
    yield* Effect.forkScoped(Effect.ensuring(Effect.ignore(consumer.done), stop))

    return {
      queue: consumer.queue,
      stats: consumer.stats,
      health: consumer.health,
      drain: (timeout) => Effect.andThen(stop, consumer.drain(timeout)),
      done: consumer.done,
      pull: ({ wait = 5000 } = {}) =>
        Effect.suspend(() => {
          const millis = Delay.constrain("Puller.pull: wait", wait, 0, Delay.max)
          return stopped ? Effect.fail(new PullerDrained({ queue: consumer.queue })) : next(millis)
        })
    }
  })

/** What a consumer calls its `handlerTimeout`: said of the option that a puller has. */
const verify = (
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
