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

/** What has a time limit. Make one with {@link deadline}, or let an object that there is anyway be one. */
export interface Deadline extends Bag.Member {
  /** Monotonic milliseconds; {@link Deadlines}' own. */
  at: number
  /** Called when the time is over. It must not throw. */
  readonly pass: () => void
}

/** A deadline that has not been started. */
export const deadline = (pass: () => void): Deadline => ({ at: Number.POSITIVE_INFINITY, pass, place: -1 })

export interface Deadlines {
  /** Milliseconds that each may take; `Infinity` for no limit. */
  readonly timeout: number
  /** Its time begins when the current turn of the event loop ends; unless it is ended before its time, it passes. */
  readonly start: (deadline: Deadline) => void
  /** Does nothing when it is not running. */
  readonly end: (deadline: Deadline) => void
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
  /** Started in this turn: the clock is read once for all of them. */
  let fresh: Array<Deadline> = []
  /** Until its callback has ended. */
  let timer: Timer | undefined

  const watch = (millis: number): void => {
    timer = timers.after(millis, look)
  }

  const look = (): void => {
    // What the sum of two fractions may be off does not count.
    const now = timers.now() + 0.001
    for (const each of running) {
      if (each.at > now || each.place === -1) continue
      running.delete(each)
      each.pass()
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
    if (!rests || running.size() > 0) return
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
