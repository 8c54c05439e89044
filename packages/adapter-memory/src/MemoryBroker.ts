/**
 * A broker inside the process: Requeue's default, and the reference implementation of an adapter.
 *
 * When to use: for development, tests, and work that may be lost when the process ends. Queues are created on first use,
 * last as long as the broker, and keep messages without consumers. All time comes from Effect's Clock, so a `TestClock`
 * controls every delay.
 */
import { type Adapter, Broker, ConfigurationError, type Connection, OptionNames, Timers } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Control } from "./Control.ts"
import * as Admin from "./internal/inspect/admin.ts"
import * as Capabilities from "./internal/capabilities.ts"
import * as InternalControl from "./internal/inspect/control.ts"
import * as Delays from "./internal/delays.ts"
import * as Dispatch from "./internal/consume/dispatch.ts"
import { every } from "./internal/every.ts"
import { operations } from "./internal/inspect/operations.ts"
import * as Publisher from "./internal/publish/publisher.ts"
import * as Settle from "./internal/settle/settle.ts"
import * as Queues from "./internal/queues.ts"
import * as Inbox from "./internal/inbox.ts"
import { keepAlive } from "./internal/consume/keepAlive.ts"
import { subscribe } from "./internal/consume/subscribe.ts"
import { fromUrl, kinds, type Options } from "./Options.ts"

/** A broker and its {@link Control}. */
export interface Controlled {
  readonly broker: Broker.Service
  readonly control: Control
}

/**
 * Makes a broker with a {@link Control}, for tests: inspect queues, publish as a foreign producer, cut the connection.
 *
 * @throws RangeError when an option is unknown, or a limit is not a whole number >= 1 or `Infinity`
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const { control } = yield* MemoryBroker.makeControlled()
 *   yield* control.publishRaw("orders", new TextEncoder().encode("{}"))
 *   return (yield* control.snapshot("orders")).ready.length
 * })
 *
 * await Effect.runPromise(Effect.scoped(program)) // => 1
 * ```
 */
export const makeControlled = (options: Options = {}): Effect.Effect<Controlled, never, Scope.Scope> => {
  OptionNames.check("MemoryBroker.make", options, kinds)
  return build(options)
}

const build = Effect.fnUntraced(function* (options: Options) {
  const { maxBodySize = Number.POSITIVE_INFINITY, maxMessages = Number.POSITIVE_INFINITY, faults = {} } = options
  const clock = yield* Clock.Clock
  const timers = yield* Timers.make
  const run = Effect.runForkWith(yield* Effect.context())
  const now = () => clock.currentTimeMillisUnsafe()
  const capabilities = Capabilities.make(maxBodySize, faults)
  const delays = Delays.make(capabilities)
  const queues = Queues.make({ timers, now, earlyBy: faults.earlyBy ?? 0, onReady: (queue) => dispatch.pump(queue) })
  const dispatch = Dispatch.make({
    timers,
    run,
    lease: capabilities.lease,
    overCountOnLoss: faults.overCountOnLoss === true
  })
  const publisher = Publisher.make({
    queues,
    pump: dispatch.pump,
    delays,
    now,
    capabilities,
    maxMessages,
    loseConfirmation: every(faults.duplicateOnLostConfirmation ?? 0)
  })
  const settleFails = every(faults.failSettle?.every ?? 0)
  const settle = Settle.make({
    queues,
    dispatch,
    publisher,
    delays,
    capabilities,
    now,
    fail: faults.failSettle && (() => (settleFails() ? faults.failSettle?.reason : undefined))
  })
  const control = InternalControl.make({
    queues,
    dispatch,
    publisher,
    headers: capabilities.headers,
    connectionBound: capabilities.connectionBound,
    forgetDelays: faults.forgetDelaysOnRestart === true,
    now,
    elapsed: timers.now,
    onState: (state) => setConnection(state)
  })
  let connection: Connection.Connection
  const setConnection = (state: Connection.Connection["state"]): void => {
    connection = { state, since: now() }
  }
  setConnection("up")
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      publisher.close()
      setConnection("down")
    })
  )
  const broker: Broker.Service = {
    capabilities,
    connection: () => connection,
    publish: publisher.publish,
    publishWithin: capabilities.transactions ? publisher.publishWithin : undefined,
    inbox: capabilities.transactions ? Inbox.make(now) : undefined,
    subscribe: (options) => subscribe(options, { queues, dispatch, settle }),
    admin: Admin.make({ queues, dispatch, settle, publisher, capabilities, now, elapsed: timers.now })
  }
  return { broker, control }
})

/**
 * Makes a broker that lasts as long as the scope. Defaults: no limits, no faults. A publish to a closed broker fails with
 * `ConnectionFailed`.
 *
 * When to use: in a program with Effect that needs the service itself; otherwise use {@link layer}.
 *
 * @throws RangeError when an option is unknown, or a limit is not a whole number >= 1 or `Infinity`
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.map(MemoryBroker.make(), ({ capabilities }) => capabilities.broker)
 * await Effect.runPromise(Effect.scoped(program)) // => "memory"
 * ```
 */
export const make = (options: Options = {}): Effect.Effect<Broker.Service, never, Scope.Scope> =>
  Effect.map(makeControlled(options), ({ broker }) => broker)

/**
 * Makes a Layer of the broker.
 *
 * @throws RangeError when an option is unknown, or a limit is not a whole number >= 1 or `Infinity`
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 *
 * const layer = MemoryBroker.layer({ maxMessages: 10_000 })
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<Broker.Broker> => Layer.effect(Broker.Broker, make(options))

/**
 * The adapter of `memory:` URLs, such as `memory:` or `memory:?maxMessages=1000&maxBodySize=1048576`. An open consumer keeps
 * the process alive.
 *
 * Fails with a `ConfigurationError` whose `field` names the wrong parameter.
 */
export const adapter: Adapter.Adapter = {
  schemes: ["memory"],
  inProcess: true,
  layer: (url, overrides) =>
    Layer.effect(
      Broker.Broker,
      Effect.suspend(() => Effect.flatMap(ConfigurationError.orFail(fromUrl(url, overrides)), make)).pipe(
        Effect.map(keepAlive)
      )
    ),
  operations
}
