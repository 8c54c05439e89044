/**
 * Deadlines: many operations with the same timeout, watched by one timer.
 *
 * When to use: for a timeout of an operation that every message needs. `Effect.timeout` costs two fibers and a timer each
 * time; a deadline costs a place in a {@link Bag}.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Bag from "./Bag.ts"
import * as ShortList from "./ShortList.ts"
import type { Timer, Timers } from "./Timers.ts"

/** A deadline counts as passed this many milliseconds early. This covers the floating-point errors of timestamps. */
export const tolerance = 0.001

/** The deadline of one operation. Make it with {@link deadline}, or use an object that every operation has anyway. */
export interface Deadline extends Bag.Member {
  /** The monotonic time of the deadline, in milliseconds. Only {@link Deadlines} changes it. */
  at: number
  /** Called when the timeout has passed. Errors are logged, see `Timers.contain`. */
  readonly pass: () => void
}

/** Makes a deadline that is not started. */
export const deadline = (pass: () => void): Deadline => ({ at: Number.POSITIVE_INFINITY, pass, place: -1 })

/** Running deadlines with the same timeout. */
export interface Deadlines {
  /** The timeout in milliseconds; `Infinity`: none. */
  readonly timeout: number
  /** Starts a deadline. Its timeout begins when the current turn of the event loop ends. */
  readonly start: (deadline: Deadline) => void
  /** Ends a deadline that is running. */
  readonly end: (deadline: Deadline) => void
  /** Runs an effect in a new fiber. At the timeout it interrupts the effect and continues with `late`. */
  readonly within: <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    late: () => Effect.Effect<A, E2>
  ) => Effect.Effect<A, E | E2, R>
}

/**
 * Makes deadlines that last as long as the timers. `timeout` is in milliseconds.
 *
 * @param stopsWhenIdle whether the timer stops when no deadline is running. Default: false. A running timer is cheaper for
 * successive operations, but keeps the process alive
 */
export const make = (timers: Timers, timeout: number, stopsWhenIdle = false): Deadlines => {
  const running = Bag.make<Deadline>()
  /** Deadlines started in this turn of the event loop. The clock is read once for all of them. */
  let fresh = ShortList.of<Deadline>()
  /** The timer, from its start until its callback has ended. */
  let timer: Timer | undefined

  const watch = (millis: number): void => {
    timer = timers.after(millis, passDue)
  }

  const passDue = (): void => {
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
    fresh = ShortList.of()
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
