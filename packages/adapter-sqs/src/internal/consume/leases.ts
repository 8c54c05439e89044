/**
 * Extends leases by visibility, up to SQS's twelve hours for a delivery.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
 */
import { Broker, BrokerError, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Limits from "../limits.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"
import { isExpired, receiptOf } from "./receipt.ts"

/** Makes the error of an ended lease, with the error that prevented its extension. */
export const expired = (queue: string, because?: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "extend",
    queue,
    reason: "LeaseLost",
    detail: `the visibility timeout of the message has ended${because === undefined ? "" : `, which could not be extended: ${because.detail}`}`,
    remedy: because?.remedy
  })

interface Lost<D> extends Pick<Broker.SettleFailure, "error" | "fate"> {
  readonly delivery: D
}

interface Extension<D> {
  readonly delivery: D
  readonly handle: string
  readonly seconds: number
}

/**
 * Returns a function that extends leases and returns those that it could not extend. A failure that is not `lost` leaves the lease
 * unchanged: the next call tries again.
 */
export const make =
  (env: {
    readonly queue: string
    readonly calls: ReceiptCalls
    /** New length of a lease, in milliseconds from now. */
    readonly duration: number
    /** Monotonic milliseconds. */
    readonly now: () => number
  }) =>
  <D extends Pick<Delivery.Delivery, "receipt">>(deliveries: ReadonlyArray<D>): Effect.Effect<ReadonlyArray<Lost<D>>> =>
    Effect.suspend(() => {
      const { duration, queue } = env
      const askedAt = env.now()
      const failures: Array<Lost<D>> = []
      const extensions: Array<Extension<D>> = []
      for (const delivery of deliveries) {
        const receipt = receiptOf(delivery)
        const left = Limits.hide - (askedAt - receipt.receivedAt)
        const seconds = Math.floor(Math.min(duration, left) / 1000)
        if (isExpired(receipt, askedAt))
          failures.push({ delivery, error: expired(queue, receipt.leaseError), fate: "lost" })
        else if (seconds > 0 && askedAt + seconds * 1000 > receipt.leaseEnds) {
          extensions.push({ delivery, handle: receipt.handle, seconds })
        }
      }
      return Effect.map(env.calls.changeVisibility(extensions), (results) => {
        for (const [index, { delivery, seconds }] of extensions.entries()) {
          const error = results[index]
          const receipt = receiptOf(delivery)
          // SQS accepts an extension after the end of the lease, and takes the message from its new consumer.
          const lost = isExpired(receipt, env.now()) ? expired(queue, error) : error
          receipt.leaseError = error
          if (lost === undefined) receipt.leaseEnds = askedAt + seconds * 1000
          else failures.push({ delivery, error: lost, fate: Broker.fateOf(lost) })
        }
        return failures
      })
    })
