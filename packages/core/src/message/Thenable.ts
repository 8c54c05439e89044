/**
 * Recognises promises of any origin. Promises of libraries and of another realm, as in Jest, are not instances of our
 * `Promise`.
 */

/** Whether a value is a promise of any kind. Throws if reading `then` throws. */
export const is = <A>(value: A | PromiseLike<A>): value is PromiseLike<A> => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  const { then } = value as { readonly then?: unknown } // With `in`, a proxy may hide it.
  return typeof then === "function"
}

/** Calls `use` if the value is a promise that rejects, because an unhandled rejection would end the process. */
export const onRejected = (value: unknown, use: (reason: unknown) => void): void => {
  try {
    if (is(value)) Promise.resolve(value).catch(use)
  } catch {
    // Reading it failed.
  }
}

/** Returns the result of `use` on a value: at once, or when the value is a promise and is fulfilled. */
export const map = <A, B>(value: A | PromiseLike<A>, use: (value: A) => B | Promise<B>): B | Promise<B> =>
  is(value) ? Promise.resolve(value).then(use) : use(value)
