/**
 * Repeated attempts, such as those to connect again: the pauses between them, and the failures that are logged.
 *
 * When to use: for an operation that an adapter tries until it succeeds. `Reconnecting` keeps a connection for good.
 */
import * as Effect from "effect/Effect"
import * as Log from "../port/Log.ts"
import * as Random from "./Random.ts"

/** The pauses between attempts. */
export interface Pauses {
  /** The pause before the second attempt, in milliseconds; the first attempt is at once. */
  readonly first: number
  /** The longest pause, in milliseconds. */
  readonly max: number
}

/** How many times as long as the one before each pause is. */
const factor = 1.5

/**
 * The pause before the next attempt, after so many failures in a row, in milliseconds: 0 after none, then growing. Jitter
 * takes up to half of it, so that many clients do not connect at the same moment. `random` is from 0 to 1.
 */
export const pause = (failures: number, random: number, { first, max }: Pauses): number =>
  failures === 0 || first === 0 ? 0 : Math.min(first * factor ** (failures - 1), max) * (0.5 + random / 2)

/** Whether a failure is logged: the first two of an outage, then every twentieth. `failures` counts those before it. */
export const isTold = (failures: number): boolean => failures < 2 || failures % 20 === 0

/** Options of {@link persist}. */
export interface PersistOptions {
  /** The pauses between attempts, in milliseconds. */
  readonly pauses: Pauses
  /** The message of the warning that is logged for a failure, with the error and the failures before it. */
  readonly message: string
  /** Further annotations of the warning. Default: none. */
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
  /** Failures before the first attempt; with any, a pause comes first. Default: 0. */
  readonly failures?: number | undefined
}

/**
 * Runs an effect until it succeeds, with growing pauses. Failures are logged, but not all of them, see {@link isTold}.
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
