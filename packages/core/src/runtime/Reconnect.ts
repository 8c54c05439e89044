/**
 * Repeats an attempt, for example to connect, until it succeeds. It pauses between attempts, and logs some of the
 * failures.
 *
 * When to use: for an operation that an adapter repeats until it succeeds. To keep a connection, use `Reconnecting` of
 * `@requeue/kit`.
 */
import * as Effect from "effect/Effect"
import * as Log from "../port/Log.ts"
import * as Random from "./Random.ts"

/** The pauses between attempts, in milliseconds. */
export interface Pauses {
  /** The pause before the second attempt. The first attempt is immediate. */
  readonly first: number
  /** The longest pause. */
  readonly max: number
}

/** How much each pause grows. */
const factor = 1.5

/**
 * Returns the pause before the next attempt, in milliseconds: 0 without failures, then growing with `failures` in a
 * row. Jitter shortens the pause by up to half, so many clients do not connect at the same moment. `random` is from 0
 * to 1.
 */
export const pause = (failures: number, random: number, { first, max }: Pauses): number =>
  failures === 0 || first === 0 ? 0 : Math.min(first * factor ** (failures - 1), max) * (0.5 + random / 2)

/**
 * Whether a failure is logged: the first two of an outage, then every twentieth. `failures` is the number of earlier
 * failures.
 */
export const isTold = (failures: number): boolean => failures < 2 || failures % 20 === 0

/** Options of {@link persist}. */
export interface PersistOptions {
  /** The pauses between attempts, in milliseconds. */
  readonly pauses: Pauses
  /** The message of the warning for a failure, which also has the error and the number of earlier failures. */
  readonly message: string
  /** Further annotations of the warning. Default: none. */
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
  /** The number of failures before this call. If it is above 0, a pause precedes the first attempt. Default: 0. */
  readonly failures?: number | undefined
}

/**
 * Runs an effect until it succeeds, with growing pauses. Logs the failures that {@link isTold} selects.
 *
 * @example
 * ```ts
 * import { Reconnect } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 *
 * let failures = 2
 * const open = Effect.suspend(() => (failures-- > 0 ? Effect.fail(new Error("refused")) : Effect.succeed("open")))
 * const opened = Reconnect.persist(open, { pauses: { first: 1, max: 10 }, message: "not open" })
 * await Effect.runPromise(opened) // => "open"
 * ```
 */
export const persist = <A, E extends { readonly message: string }, R>(
  effect: Effect.Effect<A, E, R>,
  options: PersistOptions
): Effect.Effect<A, never, R> => {
  const { annotations, failures = 0, message, pauses } = options
  const wait = Effect.flatMap(Random.next, (random) => Effect.sleep(pause(failures, random, pauses)))
  return Effect.andThen(failures === 0 ? Effect.void : wait, effect).pipe(
    Effect.tapError((error) =>
      isTold(failures) ? Log.warning(message, { ...annotations, failures, errorMessage: error.message }) : Effect.void
    ),
    Effect.catch(() => persist(effect, { ...options, failures: failures + 1 }))
  )
}
