/**
 * Deadlines: many operations with the same timeout, watched by one timer.
 *
 * When to use: for a timeout of an operation that every message needs. `Effect.timeout` costs two fibers and a timer each
 * time; a deadline costs a place in a {@link Bag}.
 *
 * @example
 * ```ts
 * import { Deadlines, Timers } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const deadlines = Deadlines.make(yield* Timers.make, 10)
 *   return yield* deadlines.within(Effect.never, () => Effect.succeed("late"))
 * })
 * await Effect.runPromise(Effect.scoped(program)) // => "late"
 * ```
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Bag from "./Bag.ts"
import type { Timer, Timers } from "./Timers.ts"

/**
 * The floating-point error of a sum of two times, in milliseconds: a time that is nearer than this has come. Without it, a
 * timer that wakes on time could find its own deadline in the future.
 */
export const tolerance = 0.001

/** The deadline of one operation. {@link deadline} makes one; an object that exists per operation anyway can be one. */
export interface Deadline extends Bag.Member {
  /** The monotonic time of the deadline, in milliseconds. Only {@link Deadlines} changes it. */
  at: number
  /** Called when the timeout has passed, as `Timers.contain` does. */
  readonly pass: () => void
}

/** Makes a deadline that is not started. */
export const deadline = (pass: () => void): Deadline => ({ at: Number.POSITIVE_INFINITY, pass, place: -1 })

/** Running deadlines with the same timeout. */
export interface Deadlines {
  /** The timeout, in milliseconds; `Infinity` for none. */
  readonly timeout: number
  /** Starts a deadline. Its timeout begins when the current turn of the event loop ends. */
  readonly start: (deadline: Deadline) => void
  /** Ends a deadline before it passes. Does nothing when it is not running. */
  readonly end: (deadline: Deadline) => void
  /** Runs an effect in a fiber of its own. When the timeout has passed, it interrupts that and continues with `late`. */
  readonly within: <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    late: () => Effect.Effect<A, E2>
  ) => Effect.Effect<A, E | E2, R>
}

/**
 * Makes deadlines that last as long as the timers. `timeout` is in milliseconds.
 *
 * @param stopsWhenIdle whether the timer stops whenever no deadline is running. Default: false. A timer that goes on is
 * cheaper where operations follow one another, but keeps the process alive
 */
export const make = (timers: Timers, timeout: number, stopsWhenIdle = false): Deadlines => {
  const running = Bag.make<Deadline>()
  /** Deadlines that started in this turn of the event loop. The clock is read once for all of them. */
  let fresh: Array<Deadline> = []
  /** The timer, from its start until its callback has ended. */
  let timer: Timer | undefined

  const watch = (millis: number): void => {
    timer = timers.after(millis, look)
  }

  const look = (): void => {
    const now = timers.now() + tolerance
    for (const each of running) {
      if (each.at > now || each.place === -1) continue
      running.delete(each)
      timers.contain(() => each.pass())
    }
    timers.cancel(timer)
    timer = undefined
    let next = Number.POSITIVE_INFINITY
    for (const { at } of running) next = Math.min(next, at)
    if (next < Number.POSITIVE_INFINITY) watch(next - timers.now())
  }

  const stamp = (): void => {
    const at = timers.now() + timeout
    for (const each of fresh) each.at = at
    fresh = []
    if (timer === undefined && running.size() > 0) watch(timeout)
  }

  const start: Deadlines["start"] = (started) => {
    if (timeout === Number.POSITIVE_INFINITY) return
    started.at = Number.POSITIVE_INFINITY
    running.add(started)
    if (fresh.push(started) === 1) queueMicrotask(stamp)
  }

  const end: Deadlines["end"] = (ended) => {
    running.delete(ended)
    if (!stopsWhenIdle || running.size() > 0) return
    timers.cancel(timer)
    timer = undefined
  }

  const within: Deadlines["within"] = <A, E, R, E2>(effect: Effect.Effect<A, E, R>, late: () => Effect.Effect<A, E2>) =>
    Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, E | E2>((resume) => {
        const fiber = Effect.runForkWith(context)(effect)
        const limit = deadline(() => resume(Effect.andThen(Fiber.interrupt(fiber), Effect.suspend(late))))
        start(limit)
        fiber.addObserver((exit) => {
          end(limit)
          resume(exit)
        })
        return Fiber.interrupt(fiber)
      })
    )

  return { timeout, start, end, within }
}
