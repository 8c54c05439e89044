/**
 * A broker for your tests, `@requeue/adapter-memory/testing`: the memory broker with a virtual clock that only the test
 * moves. Hours of retries take milliseconds, and every run is the same.
 *
 * When to use: to test handlers, policies and the messages that a program sends. Use {@link open} without Effect, on any
 * test runner, and {@link layer} with Effect.
 *
 * The clock controls all of Requeue's time: delays, backoffs, batch and handler timeouts, time stamps. It starts at the
 * current time. Jitter has a fixed seed.
 */
import type { QueueDefinition, Store } from "@requeue/core"
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

/** An open broker. `await using` closes it at the end of the block. */
export interface OpenBroker extends Tools, AsyncDisposable {
  /** The connection for the code under test. */
  readonly requeue: Requeue
  /** Closes the broker, for programs without `await using`, such as on Node 22. Further calls do nothing. */
  readonly close: () => Promise<void>
}

/** The options of a test's broker and its connection. It needs no store: it has transactions. */
export interface OpenOptions extends Options, Omit<ConnectOptions, keyof Store.Options | "store"> {}

/** `connect` checks the options of the connection. */
const openKinds: OptionNames.Of<OpenOptions> = {
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
 * The broker has its own clock, so do not use the test runner's fake timers for it. If your test installs fake timers that
 * replace `setImmediate`, call `open` first; otherwise it rejects. The broker logs nothing without a `logger` or a
 * `logLevel`.
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
export const open = async (options: OpenOptions = {}): Promise<OpenBroker> => {
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

/**
 * The {@link Tools} as Effects. A promise of `Tools` that would reject is an Effect that dies, as a failed assertion does.
 */
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
 * Makes a broker for one test, for programs with Effect: `Broker`, {@link TestBroker} and a `TestClock`.
 *
 * Your program runs on that clock, so `TestClock.adjust` moves it too. Only `advance` also waits for promises of handlers.
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
