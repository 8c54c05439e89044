/** Decides which deliveries no handler may see. Pure. */
import type { Delivery } from "../../message/Delivery.ts"
import * as Metadata from "../../message/Metadata.ts"
import { summarize } from "../../policy/Failure.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"

/**
 * The settlement of a delivery that no handler may see; `undefined` for all others.
 *
 * `acked` tells whether this process has handled the message already and only the broker does not know. `now` is in
 * milliseconds since the epoch.
 */
export const refusal = (
  delivery: Delivery,
  context: {
    readonly policy: RetryPolicy.RetryPolicy
    readonly queue: string
    readonly acked: boolean
    readonly now: number
  }
): Settlement.Settlement | undefined => {
  const { attempts, metadata } = delivery
  if (context.acked) return Settlement.Ack
  const wait = Metadata.wait(metadata, context.now, context.policy.maxAge)
  if (wait > 0) return Settlement.Release(wait)
  if (attempts > context.policy.maxAttempts) {
    // Earlier deliveries never came to a verdict: they crashed their process, or the broker counts too many.
    return RetryPolicy.giveUp(context.policy, context.queue, "retries-exhausted", {
      name: "AttemptsExceeded",
      message: `delivered ${attempts} times, ${context.policy.maxAttempts} allowed`
    })
  }
  return undefined
}

/** The settlement of a delivery whose body cannot be decoded: no retry makes it decodable. */
export const undecodable = (policy: RetryPolicy.RetryPolicy, queue: string, error: unknown): Settlement.Settlement =>
  RetryPolicy.giveUp(policy, queue, "undecodable", summarize(error))
