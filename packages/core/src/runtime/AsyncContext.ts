/**
 * Async contexts: the values of `AsyncLocalStorage` that a function sees, such as a tenant, a transaction or a span.
 *
 * A function that a program passes to us runs in the context in which the program passed it. Without this, the function
 * runs in the context of whatever calls it: another request's send, the handler of another message, a socket or a timer.
 */
import type { AsyncResource } from "node:async_hooks"

/**
 * Calls a function in one async context, with these arguments, and returns its result. What the function enters by
 * `enterWith` ends with the call.
 */
export type Within = <Args extends ReadonlyArray<unknown>, A>(call: (...args: Args) => A, ...args: Args) => A

const unchanged: Within = (call, ...args) => call(...args)

// Not by an import: some platforms do not have the module, and there a program cannot have contexts either.
const hooks = globalThis.process?.getBuiltinModule?.("node:async_hooks")

// `AsyncLocalStorage.snapshot` costs six times as much. https://nodejs.org/api/async_context.html#class-asyncresource
const makeResource = ({ AsyncResource }: NonNullable<typeof hooks>) =>
  new AsyncResource("requeue", { requireManualDestroy: true })

/** Whether a call in a resource finds what an earlier one has entered there, as it does before Node 24. */
const keepsEntered = ({ AsyncLocalStorage }: NonNullable<typeof hooks>, resource: AsyncResource): boolean => {
  const storage = new AsyncLocalStorage<boolean>()
  resource.runInAsyncScope(() => storage.enterWith(true))
  const isKept = resource.runInAsyncScope(() => storage.getStore()) === true
  storage.disable()
  return isKept
}
let isKept: boolean | undefined

/**
 * Captures the current async context.
 *
 * @example
 * ```ts
 * import { AsyncContext } from "@requeue/core/port"
 * import { AsyncLocalStorage } from "node:async_hooks"
 *
 * const tenant = new AsyncLocalStorage<string>()
 * const within = tenant.run("acme", AsyncContext.capture)
 * tenant.run("other", () => within(() => tenant.getStore())) // => "acme"
 * ```
 */
export const capture = (): Within => {
  if (hooks === undefined) return unchanged
  const context = makeResource(hooks)
  isKept ??= keepsEntered(hooks, makeResource(hooks))
  if (!isKept) return (call, ...args) => context.runInAsyncScope(call, undefined, ...args)
  const inOwn: Within = (call, ...args) => makeResource(hooks).runInAsyncScope(call, undefined, ...args)
  return (call, ...args) =>
    context.runInAsyncScope(inOwn<typeof args, ReturnType<typeof call>>, undefined, call, ...args)
}

type Callable = (...args: Array<any>) => any // Any, because parameters are contravariant.

/** Returns a function that runs in an async context. `undefined` stays `undefined`. */
export const bind = <F extends Callable | undefined>(within: Within, call: F): F => {
  if (call === undefined) return call
  const inside = (...args: Array<unknown>): unknown => within(call, ...args)
  return inside as F // It has the parameters of F.
}

/** Returns a copy of options, whose functions run in the current async context. Everything else stays as it is. */
export const bound = <Options extends object | undefined>(options: Options): Options => {
  if (options === undefined) return options
  const functions = Object.entries(options).filter(([, value]) => typeof value === "function")
  if (functions.length === 0) return { ...options }
  const within = capture()
  return { ...options, ...Object.fromEntries(functions.map(([name, call]) => [name, bind(within, call)])) }
}
