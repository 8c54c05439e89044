/**
 * Doubts about calls: the SDK repeats a call whose answer was lost, and tells of the last attempt alone, which may have been
 * throttled, or answered with entries that are refused. A call of which an earlier attempt may have been done fails as
 * doubtful, or its answer tells why.
 */
import { BrokerError } from "@requeue/core/port"
import { toBrokerError } from "./toBrokerError.ts"

/** An answer, as it is told. */
export interface Doubted {
  /** How an earlier attempt of its call has failed that may have been done; `undefined` where none has. */
  readonly doubt?: unknown
}

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
    tell: async <O>(input: object, call: () => Promise<O>): Promise<O & Doubted> => {
      try {
        return { ...(await call()), doubt: doubts.get(input) }
      } catch (cause) {
        throw doubts.get(input) ?? cause
      }
    }
  }
}
