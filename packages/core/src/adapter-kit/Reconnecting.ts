/**
 * A connection that is made again for ever. Each connection is a generation of its own: what was opened on one is never
 * used on another.
 *
 * When to use: for an adapter whose driver gives up when its connection is lost. What is lost with a connection, and what
 * must be declared again, is the adapter's business: it sees each connection come and go.
 *
 * @example
 * ```ts
 * import { Reconnecting } from "@requeue/core/adapter-kit"
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
import * as Reconnect from "./Reconnect.ts"

/** How connections of a driver are made, watched and closed. */
export interface Options<A, E> {
  /** Opens a connection. It is tried until it succeeds. */
  readonly connect: Effect.Effect<A, E>
  /** Whether a connection is open at this moment, though nobody may have acted on its end yet. */
  readonly isOpen: (connection: A) => boolean
  /** Ends when a connection is gone. */
  readonly ended: (connection: A) => Effect.Effect<unknown>
  /** Closes the connection that is open when the scope closes. */
  readonly close: (connection: A) => Effect.Effect<unknown>
  /** The pauses between attempts; the first attempt after a connection that lived for a second is at once. */
  readonly pauses: Reconnect.Pauses
  /** Annotations of log lines: which of an adapter's connections it is. */
  readonly annotations: Readonly<Record<string, unknown>>
  /** Called when a connection is there, and with `undefined` when it is gone. Default: nothing is called. */
  readonly onChange?: ((connection: A | undefined) => void) | undefined
  /** A connection that is open already. Default: none, and the first is made as all others. */
  readonly initial?: A | undefined
}

/** The connection of the moment. */
export interface Reconnecting<A, E> {
  /** The connection, if it is open. */
  readonly current: () => A | undefined
  /** The connection, as soon as there is one. */
  readonly live: Effect.Effect<A>
  /** Ends with the first attempt to connect, and with the error of that. */
  readonly tried: Effect.Effect<void, E>
}

/** A connection that lived for so many milliseconds was a good one: its end is answered at once. */
const healthy = 1000

/** Keeps a connection for as long as the scope lives. It never fails; ask `tried` for the first attempt. */
export const make = <A, E extends { readonly message: string }>(
  options: Options<A, E>
): Effect.Effect<Reconnecting<A, E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { annotations, close, ended, initial, isOpen, onChange, pauses } = options
    const tried = Deferred.makeUnsafe<void, E>()
    let current: A | undefined
    let next = Deferred.makeUnsafe<A>()
    let isNews = false
    /** In a row: attempts that failed, and connections that did not last. */
    let failures = 0

    const gained = (connection: A): void => {
      current = connection
      onChange?.(connection)
      Deferred.doneUnsafe(tried, Exit.void)
      Deferred.doneUnsafe(next, Exit.succeed(connection))
      next = Deferred.makeUnsafe<A>()
    }
    const lost = (): void => {
      current = undefined
      isNews = true
      onChange?.(undefined)
    }
    const failed = (error: E): void => {
      isNews = true
      failures++
      Deferred.doneUnsafe(tried, Exit.fail(error))
    }

    const connect = Effect.tapError(options.connect, (error) => Effect.sync(() => failed(error)))
    // What was opened is known before this can be interrupted, so that it is closed.
    const reconnect = Effect.uninterruptibleMask((restore) =>
      Effect.map(
        restore(Reconnect.persist(connect, { pauses, message: "not connected", annotations, failures })),
        gained
      )
    )

    const keep = Effect.gen(function* () {
      while (true) {
        if (current === undefined) yield* reconnect
        if (isNews) yield* Effect.annotateLogs(Effect.logInfo("connected again"), annotations)
        const born = yield* Clock.currentTimeMillis
        yield* ended(current!)
        lost()
        failures = (yield* Clock.currentTimeMillis) - born < healthy ? failures + 1 : 0
      }
    })
    if (initial !== undefined) gained(initial)
    // Runs when nobody connects any more.
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
      tried: Deferred.await(tried)
    }
  })
