/** An async context that cases can see: a name that a function of a program reads when it runs. */
import * as Effect from "effect/Effect"
import { AsyncLocalStorage } from "node:async_hooks"

const storage = new AsyncLocalStorage<string>()

/** The name of the current context. */
export const current = (): string => storage.getStore() ?? "none"

/** Enters a context, as careless code does: it holds for everything that runs in the current one from now on. */
export const enter = (name: string): void => storage.enterWith(name)

/** Calls a function in a context. */
export const inside = <A>(name: string, call: () => A): A => storage.run(name, call)

/** Runs an effect in a context. */
export const within = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.context<R>(), (context) =>
    Effect.flatten(Effect.promise(() => inside(name, () => Effect.runPromiseExitWith(context)(effect))))
  )
