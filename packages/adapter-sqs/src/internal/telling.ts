/** Calls that report whether SQS is reachable. */
import type { Connection } from "@requeue/core/port"
import * as Credentials from "./credentials.ts"
import { statusOf, toBrokerError } from "./toBrokerError.ts"

/** Makes a call. */
export type Teller = <A>(call: () => Promise<A>) => Promise<A>

/**
 * Makes calls, and reports to `reach` whether each reached SQS, and why not. Repeats a call once if the credentials
 * have expired and `forget` can renew them.
 */
export const telling =
  (reach: Connection.Tracker | undefined, forget: (() => void) | undefined): Teller =>
  async (call) => {
    try {
      const output = await call().catch((error: unknown) => {
        if (forget === undefined || !Credentials.isExpired(error)) throw error
        forget()
        return call()
      })
      reach?.set("up")
      return output
    } catch (error) {
      if (statusOf(error) === undefined) reach?.set("down", toBrokerError(error, { operation: "connect" }).message)
      else reach?.set("up")
      throw error
    }
  }
