/**
 * Attempts that fail in a row, such as those to connect again: how they are spaced, and which of them the log tells of.
 *
 * When to use: for what an adapter tries until it succeeds. For a connection that is kept for good, see `Reconnecting`.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** How attempts are spaced. */
export interface Pauses {
  /** Milliseconds before the second attempt; the first is at once. */
  readonly first: number
  /** No pause is longer, in milliseconds. */
  readonly max: number
}

/** By how much each pause is longer than the one before. */
const factor = 1.5

/**
 * Milliseconds before the next attempt, after so many failures in a row: none, then growing, each spread by half so that
 * many clients do not come back at the same moment. `random` is from 0 to 1.
 */
export const pause = (failures: number, random: number, { first, max }: Pauses): number =>
  failures === 0 ? 0 : Math.min(first * factor ** (failures - 1), max) * (0.5 + random / 2)

/** Whether the log tells of a failure: of the first two of an outage, then of every twentieth. `failures` were before it. */
export const isTold = (failures: number): boolean => failures < 2 || failures % 20 === 0

/** What is tried again, and what the log says of it. */
export interface PersistOptions {
  readonly pauses: Pauses
  /** The log's message for a failure, a warning; the error and the number of failures are its annotations. */
  readonly message: string
  /** Further annotations. Default: none. */
  readonly annotations?: Readonly<Record<string, unknown>> | undefined
  /** Failures before the first attempt, which is then not at once. Default: 0. */
  readonly failures?: number | undefined
}

/**
 * Runs an effect until it succeeds, ever more slowly, and without filling the log.
 *
 * @example
 * ```ts
 * import { Reconnect } from "@requeue/core/adapter-kit"
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
      isTold(failures)
        ? Effect.annotateLogs(Effect.logWarning(message), { ...annotations, failures, error: error.message })
        : Effect.void
    ),
    Effect.catch(() => persist(effect, { ...options, failures: failures + 1 }))
  )
}
