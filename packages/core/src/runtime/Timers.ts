/**
 * Timers: many timers on one sleeping fiber of Effect's Clock.
 *
 * When to use: in a consumer or an adapter that may need a timer for each message. A timer costs a heap entry instead
 * of a fiber, and obeys a `TestClock`. It never runs early, and jumps of the wall clock do not affect it. While no
 * timer is set, nothing keeps the process alive.
 *
 * @example
 * ```ts
 * import { Timers } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const timers = yield* Timers.make
 *   return yield* Effect.callback<string>((resume) => {
 *     timers.after(10, () => resume(Effect.succeed("due")))
 *   })
 * })
 * await Effect.runPromise(Effect.scoped(program)) // => "due"
 * ```
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Log from "../port/Log.ts"
import * as Heap from "./Heap.ts"

/** A timer that was set. Only {@link Timers} changes it. */
export interface Timer {
  /** The callback; `undefined` once it has run or was cancelled. */
  run: (() => void) | undefined
  /** Whether the timer is in the heap. */
  waits: boolean
}

/** Timers of one scope. */
export interface Timers {
  /** Monotonic time in milliseconds, with fractions. Only differences are meaningful. */
  readonly now: () => number
  /** Runs the callback once by {@link contain}, `delay` milliseconds from now or slightly later. */
  readonly after: (delay: number, run: () => void) => Timer
  /** Cancels a timer that has not run. */
  readonly cancel: (timer: Timer | undefined) => void
  /** Runs the callback now. If it throws, the error is logged. */
  readonly contain: (callback: () => void) => void
}

/** Cancelled timers leave the heap when they are at least this many and half of it. */
const sweepFrom = 64

/** The default clock, which reads the system's time. */
const system = Context.get(Context.empty(), Clock.Clock)

/** Without a BigInt, monotonic time costs half as much, and a consumer reads it twice per message. */
const monotonic = (clock: Clock.Clock): (() => number) =>
  clock === system ? () => performance.now() : () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

const containing =
  (run: (log: Effect.Effect<void>) => unknown): Timers["contain"] =>
  (callback) => {
    try {
      callback()
    } catch (defect) {
      run(Log.error("a callback of a timer threw", {}, Cause.die(defect)))
    }
  }

/** Makes timers. None runs once the scope is closed. */
// Long, because its functions share the heap.
export const make: Effect.Effect<Timers, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const contain = containing(run)
  const heap = Heap.make<Timer>()
  /** Cancelled timers in the heap. */
  let cancelled = 0
  let closed = false
  let sleeper: { readonly fiber: Fiber.Fiber<void>; readonly until: number } | undefined

  const now = monotonic(clock)

  const take = (): Timer => {
    const timer = heap.pop()!
    if (timer.run === undefined) cancelled--
    timer.waits = false
    return timer
  }

  const wake = (): void => {
    sleeper = undefined
    const until = now()
    const due: Array<Timer> = []
    while ((heap.peekKey() ?? Number.POSITIVE_INFINITY) <= until) due.push(take())
    // A timer set by a callback waits for the next turn even if due, so callbacks that set each other cannot loop forever.
    for (const timer of due) if (!closed && timer.run !== undefined) contain(timer.run)
    arm()
  }

  const arm = (): void => {
    const until = heap.peekKey()
    if (closed || until === undefined || (sleeper !== undefined && sleeper.until <= until)) return
    rest()
    const fiber = run(clock.sleep(Duration.millis(Math.max(1, Math.ceil(until - now())))))
    const mine = { fiber, until }
    sleeper = mine
    fiber.addObserver(() => {
      if (sleeper === mine) wake()
    })
  }

  /** Clears `sleeper` before interrupting it: its observer would otherwise wake and arm a second one. */
  const rest = (): void => {
    const outdated = sleeper
    sleeper = undefined
    outdated?.fiber.interruptUnsafe()
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      closed = true
      rest()
    })
  )

  return {
    now,
    contain,
    after: (delay, callback) => {
      const once = (): void => {
        timer.run = undefined
        callback()
      }
      const timer: Timer = { run: once, waits: true }
      heap.push(now() + delay, timer)
      arm()
      return timer
    },
    cancel: (timer) => {
      if (timer?.run === undefined) return
      timer.run = undefined
      if (!timer.waits) return
      const isLast = ++cancelled === heap.size()
      if (!isLast && (cancelled < sweepFrom || cancelled * 2 < heap.size())) return
      heap.keep(({ run }) => run !== undefined)
      cancelled = 0
      if (isLast) rest()
    }
  }
})
