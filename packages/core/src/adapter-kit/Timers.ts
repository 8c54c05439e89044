/**
 * Many timers on one sleeping fiber of Effect's Clock.
 *
 * When to use: in a consumer or an adapter, wherever there may be a timer per message. Set and cancelled timers cost a
 * heap entry, not a fiber, and a `TestClock` governs them. Once all are cancelled, nothing sleeps, and the process may end. A callback never runs early, and a wall clock that jumps
 * does not matter: due times are monotonic.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Heap from "./internal/heap.ts"

/** A timer that was set; {@link Timers.cancel} takes it. */
export interface Timer {
  run: (() => void) | undefined
  /** Whether it is among those that wait. */
  waits: boolean
}

export interface Timers {
  /** Monotonic milliseconds; only differences mean anything. */
  readonly now: () => number
  /** Runs the callback once, `delay` milliseconds from now. The callback must not throw. */
  readonly after: (delay: number, run: () => void) => Timer
  readonly cancel: (timer: Timer | undefined) => void
}

/** Stale entries are swept when they are this many, and more than half of the heap. */
const sweepFrom = 64

/** Makes timers that live as long as the scope; when it closes, none of them runs any more. */
export const make: Effect.Effect<Timers, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const heap = Heap.make<Timer>()
  /** Of those that wait. */
  let cancelled = 0
  let closed = false
  let sleeper: { readonly fiber: Fiber.Fiber<void>; readonly until: number } | undefined

  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

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
    // What a callback sets is for the next turn, be it due at once: else callbacks that set each other would never end.
    for (const timer of due) if (!closed) timer.run?.()
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

  /** Forgotten before it is interrupted: the observer runs inside the interruption, and would arm a second sleeper. */
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
    after: (delay, callback) => {
      const timer: Timer = { run: undefined, waits: true }
      timer.run = () => {
        timer.run = undefined
        callback()
      }
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
