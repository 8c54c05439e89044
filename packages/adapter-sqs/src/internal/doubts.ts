/**
 * Doubts about calls: the SDK repeats a call whose answer was lost, and tells of the last attempt alone, which may have been
 * throttled. A call of which one attempt may have been done fails as doubtful.
 */
import { BrokerError } from "@requeue/core/adapter-kit"
import { toBrokerError } from "./toBrokerError.ts"

/** There is no doubt yet. */
export const make = () => {
  const doubts = new WeakMap<object, unknown>()
  return {
    /** Middleware of the SDK, around each attempt. */
    note:
      <Args extends { readonly input: object }, Out>(next: (args: Args) => Promise<Out>) =>
      async (args: Args): Promise<Out> => {
        try {
          return await next(args)
        } catch (cause) {
          if (BrokerError.isDoubtful(toBrokerError(cause, { operation: "publish" }))) doubts.set(args.input, cause)
          throw cause
        }
      },
    /** Makes a call with this input, which is an object of its own. */
    tell: async <O>(input: object, call: () => Promise<O>): Promise<O> => {
      try {
        return await call()
      } catch (cause) {
        throw doubts.get(input) ?? cause
      }
    }
  }
}
