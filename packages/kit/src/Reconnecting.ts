/**
 * Reconnecting: a connection that is reopened whenever it is lost.
 *
 * When to use: for an adapter whose driver does not reconnect. `onChange` reports each connection that opens or ends. Nothing
 * carries over to the next connection: the adapter must reopen channels, redeclare queues and drop deliveries.
 *
 * @example
 * ```ts
 * import { Reconnecting } from "@requeue/kit"
 * import * as Effect from "effect/Effect"
 *
 * const connect = Effect.promise(async () => ({ isOpen: true, ended: Promise.withResolvers<void>() }))
 * const program = Effect.gen(function* () {
 *   const connection = yield* Reconnecting.make({
 *     connect,
 *     isOpen: ({ isOpen }) => isOpen,
 *     ended: ({ ended }) => Effect.promise(() => ended.promise),
 *     close: (driver) => Effect.sync(() => (driver.isOpen = false)),
 *     pauses: { first: 100, max: 10_000 },
 *     annotations: { role: "consume" }
 *   })
 *   return yield* connection.live
 * })
 * const { isOpen } = await Effect.runPromise(Effect.scoped(program))
 * isOpen // => false
 * ```
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { Log, Reconnect } from "@requeue/core/port"

/** How to open, watch and close a driver's connections. */
export interface Options<A, E> {
  /**
   * Opens a connection. It is repeated until it succeeds. If it is interrupted, it must close a connection that opens
   * later.
   */
  readonly connect: Effect.Effect<A, E>
  /** Whether a connection is open now, even before `ended` reports its end. */
  readonly isOpen: (connection: A) => boolean
  /** Succeeds when a connection has ended. */
  readonly ended: (connection: A) => Effect.Effect<unknown>
  /** Closes the open connection; called when the scope closes. */
  readonly close: (connection: A) => Effect.Effect<unknown>
  /** The pauses between attempts. If the lost connection was open for a second or more, the first attempt is immediate. */
  readonly pauses: Reconnect.Pauses
  /** Annotations of log lines, such as the role of the connection. */
  readonly annotations: Readonly<Record<string, unknown>>
  /** Called with each new connection, and with `undefined` when one has ended. Default: none. */
  readonly onChange?: ((connection: A | undefined) => void) | undefined
  /** A connection that is already open. Default: none, so the first connection is also opened by `connect`. */
  readonly initial?: A | undefined
}

/** A connection that is reopened whenever it is lost. */
export interface Reconnecting<A, E> {
  /** Returns the open connection; `undefined` while there is none. */
  readonly current: () => A | undefined
  /** Waits until a connection is open, and returns that connection. */
  readonly live: Effect.Effect<A>
  /** Waits for the first attempt to connect, and fails if that attempt failed. */
  readonly tried: Effect.Effect<void, E>
  /** Returns the error of the last failed attempt; `undefined` if connected, or if no attempt has failed since. */
  readonly error: () => E | undefined
}

/** A connection that lasted at least this many milliseconds is reopened without a pause. */
const healthy = 1000

/** Keeps a connection open until the scope closes. Never fails; `tried` reports the first attempt. */
export const make = <A, E extends { readonly message: string }>(
  options: Options<A, E>
): Effect.Effect<Reconnecting<A, E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { annotations, close, ended, initial, isOpen, onChange, pauses } = options
    const tried = Deferred.makeUnsafe<void, E>()
    let current: A | undefined
    let next = Deferred.makeUnsafe<A>()
    let wasDown = false
    let refusal: E | undefined
    /** Failed attempts and short connections in a row. */
    let failures = 0

    const gained = (connection: A): void => {
      current = connection
      refusal = undefined
      onChange?.(connection)
      Deferred.doneUnsafe(tried, Exit.void)
      const waited = next
      // Replaced first: a fiber that waited continues now, and waits again if this connection has already ended.
      next = Deferred.makeUnsafe<A>()
      Deferred.doneUnsafe(waited, Exit.succeed(connection))
    }
    const lost = (): void => {
      current = undefined
      wasDown = true
      onChange?.(undefined)
    }
    const failed = (error: E): void => {
      wasDown = true
      failures++
      refusal = error
      Deferred.doneUnsafe(tried, Exit.fail(error))
    }

    const connect = Effect.tapError(options.connect, (error) => Effect.sync(() => failed(error)))
    // Only the wait can be interrupted: every opened connection is recorded and will be closed.
    const reconnect = Effect.uninterruptibleMask((restore) =>
      Effect.map(
        restore(Reconnect.persist(connect, { pauses, message: "not connected", annotations, failures })),
        gained
      )
    )

    const keep = Effect.gen(function* () {
      while (true) {
        if (current === undefined) yield* reconnect
        if (wasDown) yield* Log.info("connected again", annotations)
        const born = yield* Clock.currentTimeMillis
        yield* ended(current!)
        lost()
        failures = (yield* Clock.currentTimeMillis) - born < healthy ? failures + 1 : 0
      }
    })
    if (initial !== undefined) gained(initial)
    // Added before the fiber below, so it runs after that fiber has stopped connecting.
    yield* Effect.addFinalizer(() => {
      const open = current
      if (open === undefined) return Effect.void
      return Effect.ensuring(close(open), Effect.sync(lost))
    })
    yield* Effect.forkScoped(keep)

    const open = (): A | undefined => (current !== undefined && isOpen(current) ? current : undefined)
    return {
      current: open,
      live: Effect.suspend(() => {
        const live = open()
        return live === undefined ? Deferred.await(next) : Effect.succeed(live)
      }),
      tried: Deferred.await(tried),
      error: () => refusal
    }
  })
