/** Moves a virtual clock from one wake-up to the next, and lets all work finish in between. */
import type { VirtualClock } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import * as RealTime from "./realTime.ts"

/**
 * How moving the clock ended: `done`: the condition holds; `over`: the time limit has passed; `stuck`: nothing waits for the
 * clock; `endless`: the clock was moved {@link maxMoves} times.
 */
export type End = "done" | "over" | "stuck" | "endless"

/** Moves a clock. */
export interface Drive {
  /** Milliseconds since the epoch. */
  readonly start: number
  /** Returns milliseconds since the start. */
  readonly now: () => number
  /** Resolves when no work is left that does not wait for the clock. */
  readonly rest: () => Promise<void>
  /** Moves the clock until the condition holds, by at most `millis` milliseconds. */
  readonly until: (done: () => boolean, millis: number) => Promise<End>
  readonly advance: (millis: number) => Promise<void>
  /** Wraps a handler: the clock then waits for its promises. */
  readonly watch: <In extends ReadonlyArray<unknown>>(handler: (...input: In) => unknown) => (...input: In) => unknown
}

/** The most moves of the clock until a condition holds. */
const maxMoves = 10_000

const isPromiseLike = (u: unknown): u is PromiseLike<unknown> =>
  typeof u === "object" && u !== null && "then" in u && typeof u.then === "function"

/** @param promiseTimeout how long to wait for the promise of a handler, in milliseconds of real time */
export const make = (clock: VirtualClock.VirtualClock, turns: RealTime.Turns, promiseTimeout: number): Drive => {
  const run = Effect.runPromiseWith(Context.make(Scheduler.Scheduler, turns.scheduler))
  const start = clock.currentTimeMillisUnsafe()
  const now = () => clock.currentTimeMillisUnsafe() - start
  const running = new Set<Promise<unknown>>()

  const rest = async (): Promise<void> => {
    for (;;) {
      if (!(await turns.rest())) {
        throw new Error(
          "the clock does not move, but the program never becomes idle. Is a message retried for ever without a delay?"
        )
      }
      if (running.size === 0) return
      const waited = [...running]
      // A handler that does not end in time waits for the clock or the test, so do not wait for it again.
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
      // The consumer refuses a missing handler.
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
