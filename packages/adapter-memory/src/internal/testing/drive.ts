/** Moves a virtual clock from one wake-up to the next, and lets everything finish before it moves on. */
import type { VirtualClock } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import * as RealTime from "./realTime.ts"

/**
 * How moves of the clock have ended: `done`, the condition holds; `over`, the time is over; `stuck`, nobody waits for
 * the clock; `endless`, the clock was moved so often that it would never end.
 */
export type End = "done" | "over" | "stuck" | "endless"

/** A clock that is moved. */
export interface Drive {
  /** Milliseconds since the epoch. */
  readonly start: number
  /** Milliseconds since the start. */
  readonly now: () => number
  /** Resolves when all has happened that can happen without a move of the clock. */
  readonly rest: () => Promise<void>
  /** Moves the clock until the condition holds, for so many milliseconds at most. */
  readonly until: (done: () => boolean, millis: number) => Promise<End>
  /** Moves the clock by so many milliseconds. */
  readonly advance: (millis: number) => Promise<void>
  /** Wraps a handler, so that its promises are waited for before the clock is moved. */
  readonly watch: <In extends ReadonlyArray<unknown>>(handler: (...input: In) => unknown) => (...input: In) => unknown
}

/** Moves of the clock after which a condition is given up. */
const maxMoves = 10_000

const isPromiseLike = (u: unknown): u is PromiseLike<unknown> =>
  typeof u === "object" && u !== null && "then" in u && typeof u.then === "function"

/** @param promiseTimeout milliseconds of real time that the promise of a handler is waited for */
export const make = (clock: VirtualClock.VirtualClock, turns: RealTime.Turns, promiseTimeout: number): Drive => {
  const run = Effect.runPromiseWith(Context.make(Scheduler.Scheduler, turns.scheduler))
  const start = clock.currentTimeMillisUnsafe()
  const now = () => clock.currentTimeMillisUnsafe() - start
  const running = new Set<Promise<unknown>>()

  const rest = async (): Promise<void> => {
    for (;;) {
      if (!(await turns.rest())) {
        throw new Error(
          "time stands still, and yet something always happens: is a message retried for ever without a delay?"
        )
      }
      if (running.size === 0) return
      const waited = [...running]
      // A handler that has been waited for in vain waits for the clock, or for the test: it is not waited for again.
      if (!(await RealTime.within(promiseTimeout, Promise.race(waited))))
        for (const handled of waited) running.delete(handled)
    }
  }

  const moveTo = async (time: number): Promise<void> => {
    await run(clock.setTime(time))
    await rest()
  }

  const move = async (done: () => boolean, end: number, moves: number): Promise<End> => {
    await rest()
    for (let moved = 0; moved < moves; moved++) {
      if (done()) return "done"
      const next = clock.next()
      if (next === undefined) return "stuck"
      if (next > end) {
        await moveTo(end)
        return "over"
      }
      await moveTo(next)
    }
    return "endless"
  }

  return {
    start,
    now,
    rest,
    until: (done, millis) => move(done, clock.currentTimeMillisUnsafe() + millis, maxMoves),
    advance: async (millis) => {
      const end = clock.currentTimeMillisUnsafe() + millis
      await move(() => false, end, Number.POSITIVE_INFINITY)
      if (clock.currentTimeMillisUnsafe() < end) await moveTo(end)
    },
    watch: (handler) => {
      // A handler that is missing is for the consumer to refuse.
      if (typeof handler !== "function") return handler
      return (...input) => {
        const result = handler(...input)
        if (!isPromiseLike(result)) return result
        const outcome = Promise.resolve(result)
        const handled: Promise<unknown> = outcome.then(
          () => running.delete(handled),
          () => running.delete(handled)
        )
        running.add(handled)
        return outcome
      }
    }
  }
}
