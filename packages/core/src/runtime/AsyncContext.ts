/**
 * Async contexts: the values of `AsyncLocalStorage` that a function sees, such as a tenant, a transaction or a span.
 *
 * A program's functions run in the context in which the program passed them to Requeue. Otherwise they would run in the
 * context of another request, the handler of another message, a socket or a timer.
 */
import type { AsyncResource } from "node:async_hooks"

/** Calls a function in one async context and returns its result. Contexts entered by `enterWith` end with the call. */
export type Within = <Args extends ReadonlyArray<unknown>, A>(call: (...args: Args) => A, ...args: Args) => A

const unchanged: Within = (call, ...args) => call(...args)

// Not an import: some platforms lack the module, and their programs have no contexts either.
const hooks = globalThis.process?.getBuiltinModule?.("node:async_hooks")

// `AsyncLocalStorage.snapshot` costs six times as much. https://nodejs.org/api/async_context.html#class-asyncresource
const makeResource = ({ AsyncResource }: NonNullable<typeof hooks>) =>
  new AsyncResource("requeue", { requireManualDestroy: true })

/** Whether a call in a resource sees what an earlier call entered there, as before Node 24. */
const keepsEntered = ({ AsyncLocalStorage }: NonNullable<typeof hooks>, resource: AsyncResource): boolean => {
  const storage = new AsyncLocalStorage<boolean>()
  resource.runInAsyncScope(() => storage.enterWith(true))
  const isKept = resource.runInAsyncScope(() => storage.getStore()) === true
  storage.disable()
  return isKept
}
let isKept: boolean | undefined

/** Captures the current async context. */
export const capture = (): Within => {
  if (hooks === undefined) return unchanged
  const context = makeResource(hooks)
  isKept ??= keepsEntered(hooks, makeResource(hooks))
  if (!isKept) return (call, ...args) => context.runInAsyncScope(call, undefined, ...args)
  const inNew: Within = (call, ...args) => makeResource(hooks).runInAsyncScope(call, undefined, ...args)
  return (call, ...args) =>
    context.runInAsyncScope(inNew<typeof args, ReturnType<typeof call>>, undefined, call, ...args)
}

type Callable = (...args: Array<any>) => any // Any, because parameters are contravariant.

/** Returns a function that runs in an async context. `undefined` stays `undefined`. */
export const bind = <F extends Callable | undefined>(within: Within, call: F): F => {
  if (call === undefined) return call
  const inside = (...args: Array<unknown>): unknown => within(call, ...args)
  return inside as F // It has the parameters of F.
}

/** Returns a copy of options whose functions run in the current async context. */
export const bound = <Options extends object | undefined>(options: Options): Options => {
  if (options === undefined) return options
  const functions = Object.entries(options).filter(([, value]) => typeof value === "function")
  if (functions.length === 0) return { ...options }
  const within = capture()
  return { ...options, ...Object.fromEntries(functions.map(([name, call]) => [name, bind(within, call)])) }
}
