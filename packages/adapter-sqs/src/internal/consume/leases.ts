/**
 * Extends leases by visibility, up to the twelve hours that SQS gives a delivery.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Results } from "../batchCall.ts"
import * as Limits from "../limits.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"
import { isExpired, type Lease, lost } from "./receipt.ts"

/** The error about a lease that has ended, and that could not be extended because of another error. */
export const expired = (queue: string, because?: BrokerError.BrokerError): BrokerError.BrokerError =>
  lost(
    { operation: "extend", queue },
    `its visibility timeout has ended${because === undefined ? "" : `, which could not be extended: ${because.detail}`}`,
    because?.remedy
  )

interface Extension {
  /** The position of the lease. */
  readonly at: number
  readonly lease: Lease
  readonly handle: string
  readonly seconds: number
}

/**
 * Makes the function that extends leases. It answers the errors of those that are lost. An extension that fails otherwise leaves
 * the lease as it was: the next call asks again, and tells why when the lease has ended.
 */
export const make =
  (env: {
    readonly queue: string
    readonly calls: Pick<ReceiptCalls, "changeVisibility">
    /** Milliseconds from now that a lease is made to last. */
    readonly duration: number
    /** Monotonic milliseconds. */
    readonly now: () => number
  }) =>
  (leases: ReadonlyArray<Lease>): Effect.Effect<Results> =>
    Effect.suspend(() => {
      const { duration, queue } = env
      const askedAt = env.now()
      const errors: Array<Results[number]> = leases.map(() => undefined)
      const extensions: Array<Extension> = []
      for (const [at, lease] of leases.entries()) {
        const left = Limits.hide - (askedAt - lease.receivedAt)
        const seconds = Math.floor(Math.min(duration, left) / 1000)
        if (isExpired(lease, askedAt)) errors[at] = expired(queue, lease.leaseError)
        else if (seconds > 0 && askedAt + seconds * 1000 > lease.leaseEnds) {
          extensions.push({ at, lease, handle: lease.handle, seconds })
        }
      }
      return Effect.map(env.calls.changeVisibility(extensions), (results) => {
        for (const [index, { at, lease, seconds }] of extensions.entries()) {
          const error = results[index]
          // SQS takes an extension that comes after the end of the lease as well, from whoever has the message by then.
          const told = isExpired(lease, env.now()) ? expired(queue, error) : error
          lease.leaseError = error
          if (told === undefined) lease.leaseEnds = askedAt + seconds * 1000
          if (told?.reason === "LeaseLost") errors[at] = told
        }
        return errors
      })
    })
