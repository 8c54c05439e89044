/**
 * Doubts about repeated calls. The SDK repeats a call without an answer, but reports only the last attempt, which may
 * have been throttled or refused. If an earlier attempt may have taken effect, the call fails as doubtful, or its
 * response carries the doubt.
 */
import { BrokerError } from "@requeue/core/port"
import { toBrokerError } from "./toBrokerError.ts"

/** A response with a possible doubt. */
export interface Doubted {
  /** The error of an earlier attempt that may have taken effect; `undefined` if there is none. */
  readonly doubt?: unknown
}

/** Starts without doubts. */
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
    /** Makes a call. Its input object must be unique. */
    tell: async <O>(input: object, call: () => Promise<O>): Promise<O & Doubted> => {
      try {
        return { ...(await call()), doubt: doubts.get(input) }
      } catch (cause) {
        throw doubts.get(input) ?? cause
      }
    }
  }
}
