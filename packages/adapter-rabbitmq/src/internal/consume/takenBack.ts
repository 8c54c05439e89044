/**
 * Messages that the server took back from a consumer because the handler exceeded the consumer timeout. From 4.3 on the
 * server does not count this as a failed delivery, so this process counts it while it lives.
 * https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
 */
import { BoundedMap } from "@requeue/core/port"
import type { Incoming } from "../client.ts"
import { fingerprint } from "./identity.ts"
import type { Receipt } from "./receipt.ts"

/** Counts by message. */
export interface TakenBack {
  readonly add: (receipts: ReadonlyArray<Receipt>) => void
  /** How often the server has taken back this message. */
  readonly count: (message: Incoming) => number
}

/** The number of messages to remember. */
const limit = 10_000

/** Starts without counts. */
export const make = (): TakenBack => {
  const counts = BoundedMap.make<number>(limit)
  return {
    add: (receipts) => {
      for (const { message } of receipts) {
        const key = fingerprint(message.content, message.properties)
        counts.set(key, (counts.get(key) ?? 0) + 1)
      }
    },
    count: ({ content, fields, properties }) =>
      fields.redelivered && !counts.isEmpty() ? (counts.get(fingerprint(content, properties)) ?? 0) : 0
  }
}
