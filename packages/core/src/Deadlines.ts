/**
 * The ends of things that may all take equally long: one timer for all of them, whatever their number.
 *
 * When to use: wherever something with a time limit happens for every message. `Effect.timeout` costs two fibers and a
 * timer each time; this costs a place in a {@link Bag}.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Bag from "./Bag.ts"
import type { Timer, Timers } from "./Timers.ts"

export interface Deadline extends Bag.Member {
  /** Monotonic milliseconds. */
  readonly at: number
  readonly pass: () => void
}

export interface Deadlines {
  /** Milliseconds that each may take; `Infinity` for no limit. */
  readonly timeout: number
  /** `pass` is called when the time is over, unless it was ended before. It must not throw. */
  readonly start: (pass: () => void) => Deadline | undefined
  readonly end: (deadline: Deadline | undefined) => void
  /** Runs an effect in a fiber of its own; when the time is over, interrupts it and goes on with `late`. */
  readonly within: <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    late: () => Effect.Effect<A, E2>
  ) => Effect.Effect<A, E | E2, R>
}

/**
 * Lasts as long as the timers.
 *
 * @param rests whether the timer is given up each time that nothing is left to watch. Else it runs on, which is cheaper
 * where things come one by one, and keeps the process alive
 */
export const make = (timers: Timers, timeout: number, rests = false): Deadlines => {
  const running = Bag.make<Deadline>()
  /** Until its callback has ended. */
  let timer: Timer | undefined

  const watch = (millis: number): void => {
    timer = timers.after(millis, look)
  }

  const look = (): void => {
    // What the sum of two fractions may be off does not count.
    const now = timers.now() + 0.001
    for (const deadline of running) {
      if (deadline.at > now || deadline.place === -1) continue
      running.delete(deadline)
      deadline.pass()
    }
    timers.cancel(timer)
    timer = undefined
    let next = Number.POSITIVE_INFINITY
    for (const { at } of running) next = Math.min(next, at)
    if (next < Number.POSITIVE_INFINITY) watch(next - timers.now())
  }

  const start: Deadlines["start"] = (pass) => {
    if (timeout === Number.POSITIVE_INFINITY) return undefined
    const deadline: Deadline = { at: timers.now() + timeout, pass, place: -1 }
    running.add(deadline)
    if (timer === undefined) watch(timeout)
    return deadline
  }

  const end: Deadlines["end"] = (deadline) => {
    if (deadline === undefined) return
    running.delete(deadline)
    if (!rests || running.size() > 0) return
    timers.cancel(timer)
    timer = undefined
  }

  const within: Deadlines["within"] = <A, E, R, E2>(effect: Effect.Effect<A, E, R>, late: () => Effect.Effect<A, E2>) =>
    Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, E | E2>((resume) => {
        const fiber = Effect.runForkWith(context)(effect)
        const deadline = start(() => resume(Effect.andThen(Fiber.interrupt(fiber), Effect.suspend(late))))
        fiber.addObserver((exit) => {
          end(deadline)
          resume(exit)
        })
        return Fiber.interrupt(fiber)
      })
    )

  return { timeout, start, end, within }
}
