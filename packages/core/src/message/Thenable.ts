/**
 * Promises, whoever has made them: those of another realm, as tests in Jest have, and those of a library are no `Promise` of
 * ours.
 */

/** Whether a value is a promise of any kind. It throws where the value cannot be asked. */
export const is = <A>(value: A | PromiseLike<A>): value is PromiseLike<A> => {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false
  const { then } = value as { readonly then?: unknown } // Asked with `in`, a proxy may deny what it has.
  return typeof then === "function"
}

/**
 * Calls back when a value is a promise that is rejected, and else does nothing: where nobody waits for what a function of the
 * user answers or throws, its rejection would end the process.
 */
export const onRejected = (value: unknown, use: (reason: unknown) => void): void => {
  try {
    if (is(value)) Promise.resolve(value).catch(use)
  } catch {
    // It cannot be asked.
  }
}

/** The result of `use` on a value: at once, or when the promise of it is fulfilled. */
export const map = <A, B>(value: A | PromiseLike<A>, use: (value: A) => B | Promise<B>): B | Promise<B> =>
  is(value) ? Promise.resolve(value).then(use) : use(value)
