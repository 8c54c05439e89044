/**
 * Direct effects end in a callback, and therefore run without a fiber.
 *
 * When to use: for work that an adapter does for every message without composing effects, such as `publish`. The core
 * calls a direct effect. A direct effect can also be composed like any other effect, and then runs in a fiber.
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
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Effectable from "effect/Effectable"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/**
 * Begins the work, and calls `onExit` once, now or later. The returned function abandons the work: later `onExit` calls
 * are ignored. It returns the error that describes the work so far; `undefined` if that is unknown.
 */
export type Begin<A, E> = (onExit: (exit: Exit.Exit<A, E>) => void) => () => E | undefined

/**
 * A direct effect. {@link run} and the method `begin` run it without a fiber. Composed with other effects, it runs in a
 * fiber.
 */
export class Direct<A, E> extends Effectable.Class<A, E> {
  readonly begin: Begin<A, E>

  constructor(begin: Begin<A, E>) {
    super()
    this.begin = begin
  }

  override asEffect(): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      let interruption: E | undefined
      const ended = Effect.callback<A, E>((resume) => {
        const abandon = this.begin(resume)
        return Effect.sync(() => {
          interruption = abandon()
        })
      })
      return Effect.onInterrupt(ended, () =>
        Effect.suspend(() => (interruption === undefined ? Effect.void : Effect.fail(interruption)))
      )
    })
  }
}

/** Makes a direct effect. Anything thrown while it begins is a defect. */
export const make = <A, E>(begin: Begin<A, E>): Direct<A, E> => new Direct(begin)

const nothingToAbandon = () => undefined

/** Calls `onExit` at once, for work whose outcome is known at once. Return its result from a {@link Begin}. */
export const ended = <A, E>(onExit: (exit: Exit.Exit<A, E>) => void, exit: Exit.Exit<A, E>): (() => undefined) => {
  onExit(exit)
  return nothingToAbandon
}

/**
 * Runs an effect: a direct effect without a fiber, any other effect in the fiber that `fork` starts. `onExit` is called
 * once, possibly before this returns. The returned function interrupts the effect; a direct effect ends at once.
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
    const abandon = begin(end)
    return () => {
      if (hasEnded) return
      hasEnded = true
      const interruption = abandon()
      onExit(interruption === undefined ? Exit.interrupt() : Exit.fail(interruption))
    }
  } catch (defect) {
    end(Exit.die(defect))
    return nothingToAbandon
  }
}

/**
 * Runs an effect as {@link run} does, and returns its promise. If the effect fails before this returns, this throws: callers
 * in a synchronous transaction cannot await a rejection. `errorOf`: the error of a cause. Default: the failure or defect.
 */
export const toPromise = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
  errorOf: (cause: Cause.Cause<E>) => unknown = Cause.squash
): Promise<A> => {
  const { promise, reject, resolve } = Promise.withResolvers<A>()
  let hasReturned = false
  const failures: Array<unknown> = []
  run(effect, fork, (exit) => {
    if (Exit.isSuccess(exit)) resolve(exit.value)
    else if (hasReturned) reject(errorOf(exit.cause))
    else failures.push(errorOf(exit.cause))
  })
  hasReturned = true
  if (failures.length > 0) throw failures[0]
  return promise
}
