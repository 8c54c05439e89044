/**
 * A broker for users' tests, `@requeue/adapter-memory/testing`: the memory broker with a clock of its own, which stands
 * still until the test moves it. Hours of retries take milliseconds, and every run is the same.
 *
 * When to use: to test handlers, policies and the messages that a program sends. {@link open} for programs without
 * Effect, on any test runner; {@link layer} for programs with Effect.
 *
 * All of Requeue's time passes on that clock: delays, backoffs, batch and handler timeouts, time stamps. It begins at
 * the time at which the broker was opened. Jitter is drawn with a fixed seed.
 */
import type { QueueDefinition } from "@requeue/core"
import { Broker, type Delay, OptionNames } from "@requeue/core/port"
import { connect, type ConnectOptions, type Requeue } from "@requeue/core/promise"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { kinds, make } from "./internal/testing/fixture.ts"
import * as RealTime from "./internal/testing/realTime.ts"
import type { AnyBody, DeadLetter, Happening, IdleOptions, Options, Sent, Tools } from "./internal/testing/tools.ts"

export type { DeadLetter, Happening, IdleOptions, Options, Sent, Tools } from "./internal/testing/tools.ts"

/** An open broker. The end of its `await using` block closes it, as `close` does. */
export interface OpenBroker extends Tools, AsyncDisposable {
  /** For the code under test: consume and send with it. */
  readonly requeue: Requeue
  /** Closes it, where there is no `await using`: Node 22 does not know it. Once is enough, and more does nothing. */
  readonly close: () => Promise<void>
}

/** The options of a connection are checked by `connect`. */
const openKinds: OptionNames.Of<Options & ConnectOptions> = {
  ...kinds,
  adapters: true,
  logger: true,
  logLevel: true,
  publishTimeout: true,
  maxPending: true,
  waitForBroker: true,
  telemetry: true
}

/**
 * Opens a broker for one test, for programs without Effect.
 *
 * It needs no fake timers of the test runner. Where some are in use that replace `setImmediate`, open the broker first;
 * else it rejects. Logs nothing unless a `logger` or a `logLevel` is given.
 *
 * @throws RangeError when an option is unknown, or a limit is not a whole number >= 1 or `Infinity`
 *
 * @example
 * ```ts
 * import * as Testing from "@requeue/adapter-memory/testing"
 * import { sequence } from "@requeue/core/promise"
 *
 * await using broker = await Testing.open()
 * const retry = { maxRetries: 2, backoff: sequence(["10 seconds", "1 minute"]) }
 * await broker.requeue.consume("webhooks", { retry }, () => Promise.reject(new Error("503")))
 *
 * await broker.requeue.send("webhooks", { url: "https://example.com" })
 * await broker.waitUntilIdle()
 * broker.now() // => 70_000
 * const [letter] = await broker.deadLettersOf("webhooks")
 * letter?.attempts // => 3
 * ```
 */
export const open = async (options: Options & ConnectOptions = {}): Promise<OpenBroker> => {
  OptionNames.check("Testing.open", options, openKinds)
  const {
    adapters,
    logLevel,
    logger = logLevel === undefined ? false : undefined,
    telemetry,
    ...brokerOptions
  } = options
  RealTime.verify()
  const scope = Scope.makeUnsafe()
  const { context, tools, watch } = await Effect.runPromise(Scope.provide(make(brokerOptions), scope))
  const requeue = await connect(Layer.succeedContext(context), { adapters, logger, logLevel, telemetry })
  const close = async () => {
    await tools.finish(requeue.close())
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
  return {
    ...tools,
    requeue: {
      ...requeue,
      consume: (queue, consumeOptions, handler) => requeue.consume(queue, consumeOptions, watch(handler)),
      consumeBatch: (queue, consumeOptions, handler) => requeue.consumeBatch(queue, consumeOptions, watch(handler))
    },
    close,
    [Symbol.asyncDispose]: close
  }
}

/** The {@link Tools} as Effects. They die, as failed assertions do, where the promises of `Tools` reject. */
export interface Service {
  readonly now: () => number
  readonly happened: () => ReadonlyArray<Happening>
  readonly advance: (duration: Delay.DurationInput) => Effect.Effect<void>
  readonly waitUntilIdle: (options?: IdleOptions) => Effect.Effect<void>
  readonly expectNothingElse: Effect.Effect<void>
  readonly sent: <A = AnyBody>(queue: QueueDefinition.Input<A, never>) => Effect.Effect<ReadonlyArray<Sent<A>>>
  readonly deadLetters: <A = AnyBody>(
    queue: QueueDefinition.Input<A, never>
  ) => Effect.Effect<ReadonlyArray<DeadLetter<A>>>
  readonly deadLettersOf: <A = AnyBody>(
    queue: QueueDefinition.Input<A, never>
  ) => Effect.Effect<ReadonlyArray<DeadLetter<A>>>
}

/** The tools of a test with Effect; see {@link layer}. */
export class TestBroker extends Context.Service<TestBroker, Service>()("@requeue/adapter-memory/TestBroker") {}

/**
 * A broker for one test, for programs with Effect: `Broker`, {@link TestBroker} and a `TestClock` of its own.
 *
 * The program that it is provided to runs on that clock, so that `TestClock.adjust` moves it too; `advance` also waits
 * for promises of handlers.
 *
 * @throws RangeError when an option is unknown, or a limit is not a whole number >= 1 or `Infinity`
 *
 * @example
 * ```ts
 * import * as Testing from "@requeue/adapter-memory/testing"
 * import { Backoff, Consumer, Producer, RetryPolicy } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence(["10 seconds", "1 minute"]) })
 *
 * const test = Effect.gen(function* () {
 *   const broker = yield* Testing.TestBroker
 *   yield* Consumer.start("webhooks", { retry }, () => Effect.fail(new Error("503")))
 *   yield* (yield* Producer.make("webhooks")).send({ url: "https://example.com" })
 *   yield* broker.waitUntilIdle()
 *   return [broker.now(), (yield* broker.deadLettersOf("webhooks")).length]
 * })
 *
 * await Effect.runPromise(test.pipe(Effect.scoped, Effect.provide(Testing.layer()))) // => [70_000, 1]
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<Broker.Broker | TestBroker> => {
  OptionNames.check("Testing.layer", options, kinds)
  return Layer.effectContext(
    Effect.map(make(options), ({ context, tools }) => {
      const { advance, deadLetters, deadLettersOf, expectNothingElse, happened, now, sent, waitUntilIdle } = tools
      return Context.add(context, TestBroker, {
        now,
        happened,
        advance: (duration) => Effect.promise(() => advance(duration)),
        waitUntilIdle: (idleOptions) => Effect.promise(() => waitUntilIdle(idleOptions)),
        expectNothingElse: Effect.promise(expectNothingElse),
        sent: (queue) => Effect.promise(() => sent(queue)),
        deadLetters: (queue) => Effect.promise(() => deadLetters(queue)),
        deadLettersOf: (queue) => Effect.promise(() => deadLettersOf(queue))
      })
    })
  )
}
