/** Extends leases by visibility, up to the twelve hours that SQS gives a delivery. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Calls } from "../settle/receiptCalls.ts"
import { isExpired, receiptOf } from "./receipt.ts"
import { longestHide } from "../settle/toCommand.ts"

const lost = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "extend", queue, reason: "LeaseLost", detail })

export const make =
  (env: {
    readonly queue: string
    readonly calls: Calls
    /** Milliseconds from now that a lease is made to last. */
    readonly duration: number
    /** Monotonic milliseconds. */
    readonly now: () => number
  }) =>
  /** Answers those that are lost; what could not be asked now is asked the next time. */
  (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.suspend(() => {
      const { duration, queue } = env
      const asked = env.now()
      const failures: Array<Broker.SettleFailure> = []
      const held: Array<{ readonly delivery: Delivery.Delivery; readonly handle: string; readonly seconds: number }> =
        []
      for (const delivery of deliveries) {
        const receipt = receiptOf(delivery)
        const left = longestHide - (asked - receipt.receivedAt)
        const seconds = Math.floor(Math.min(duration, left) / 1000)
        if (isExpired(receipt, asked)) {
          failures.push({ delivery, error: lost(queue, "its visibility timeout has ended") })
        } else if (seconds > 0 && asked + seconds * 1000 > receipt.leaseEnds) {
          held.push({ delivery, handle: receipt.handle, seconds })
        }
      }
      return Effect.map(env.calls.hide(held), (answers) => {
        for (const [index, { delivery, seconds }] of held.entries()) {
          const error = answers[index]
          const receipt = receiptOf(delivery)
          receipt.isUnsure = error !== undefined
          if (error === undefined) receipt.leaseEnds = asked + seconds * 1000
          if (error?.reason === "LeaseLost") failures.push({ delivery, error })
        }
        return failures
      })
    })
