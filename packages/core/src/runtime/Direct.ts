/**
 * Direct effects: effects that end in a callback, and that can therefore be run without a fiber.
 *
 * When to use: for what an adapter does for every message and does not compose of other effects, as `publish`. The core runs a
 * direct effect by calling it. As any other effect it can be composed, and then runs in the fiber of what it is composed with.
 *
 * @example
 * ```ts
 * import { Direct } from "@requeue/core/port"
 * import * as Effect from "effect/Effect"
 * import * as Exit from "effect/Exit"
 *
 * const one = Direct.make<number, never>((onExit) => {
 *   const timer = setTimeout(() => onExit(Exit.succeed(1)), 10)
 *   return () => void clearTimeout(timer)
 * })
 * await Effect.runPromise(Effect.map(one, (n) => n + 1)) // => 2
 * ```
 */
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/**
 * Begins the work, and calls `onExit` once, now or later. The function that it returns gives the work up: whatever calls
 * `onExit` then is ignored, and the error that it answers is what is known of the work by then; `undefined` for nothing.
 */
export type Begin<A, E> = (onExit: (exit: Exit.Exit<A, E>) => void) => () => E | undefined

/** An effect that can be run without a fiber, by {@link run} or by its `begin`. */
export class Direct<A, E> extends Effectable.Class<A, E> {
  readonly begin: Begin<A, E>

  constructor(begin: Begin<A, E>) {
    super()
    this.begin = begin
  }

  override asEffect(): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      let known: E | undefined
      const ended = Effect.callback<A, E>((resume) => {
        const giveUp = this.begin(resume)
        return Effect.sync(() => {
          known = giveUp()
        })
      })
      return Effect.onInterrupt(ended, () =>
        Effect.suspend(() => (known === undefined ? Effect.void : Effect.fail(known)))
      )
    })
  }
}

/** Makes a direct effect. What is thrown while it begins is a defect. */
export const make = <A, E>(begin: Begin<A, E>): Direct<A, E> => new Direct(begin)

const nothingToGiveUp = () => undefined

/** The end of what has ended before it began. */
export const ended = <A, E>(onExit: (exit: Exit.Exit<A, E>) => void, exit: Exit.Exit<A, E>): (() => undefined) => {
  onExit(exit)
  return nothingToGiveUp
}

/**
 * Runs an effect: a direct one without a fiber, any other in the one that `fork` starts. `onExit` is called once, maybe before
 * this returns. The function that it returns interrupts the effect, which a direct one answers at once.
 */
export const run = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
  onExit: (exit: Exit.Exit<A, E>) => void
): (() => void) => {
  if (!(effect instanceof Direct)) {
    const fiber = fork(effect)
    fiber.addObserver(onExit)
    return () => fiber.interruptUnsafe()
  }
  let hasEnded = false
  const end = (exit: Exit.Exit<A, E>): void => {
    if (hasEnded) return
    hasEnded = true
    onExit(exit)
  }
  const begin: Begin<A, E> = effect.begin
  try {
    const giveUp = begin(end)
    return () => {
      if (hasEnded) return
      hasEnded = true
      const known = giveUp()
      onExit(known === undefined ? Exit.interrupt() : Exit.fail(known))
    }
  } catch (defect) {
    end(Exit.die(defect))
    return nothingToGiveUp
  }
}
