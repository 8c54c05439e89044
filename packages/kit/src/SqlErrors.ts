/**
 * Errors of brokers on SQL databases that no server reports.
 *
 * When to use: in an adapter for an SQL database.
 */
import { BrokerError, type Outgoing } from "@requeue/core/port"

/** The operation of the port that failed, and its queue. */
export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
}

/** The errors of one broker. */
export interface Errors {
  /** The delivery's lease has ended, or it was settled before. */
  readonly leaseLost: (context: Context) => BrokerError.BrokerError
  /** The message must not create its queue. */
  readonly queueMissing: (queue: string) => BrokerError.BrokerError
  /** `limit` is in bytes. */
  readonly bodyTooLarge: (message: Outgoing.Outgoing, limit: number) => BrokerError.BrokerError
  /** The value is not an open transaction of the database. */
  readonly notTransaction: (
    context: Context,
    detail: string,
    remedy: string,
    cause?: unknown
  ) => BrokerError.BrokerError
  /** An operator must change the database or the options. Default of `operation`: `open`. */
  readonly misconfigured: (detail: string, remedy: string, operation?: string) => BrokerError.BrokerError
}

/** Makes the errors of a broker. */
export const make = (broker: string): Errors => ({
  leaseLost: (context) =>
    new BrokerError.BrokerError({
      broker,
      reason: "LeaseLost",
      detail: "its lease has ended, or the delivery was settled before",
      ...context
    }),
  queueMissing: (queue) =>
    new BrokerError.BrokerError({
      broker,
      operation: "publish",
      queue,
      reason: "QueueMissing",
      detail: "there is no such queue",
      remedy: "Run requeue create for this queue, or start a consumer of it"
    }),
  bodyTooLarge: ({ body, queue }, limit) =>
    new BrokerError.BrokerError({
      broker,
      operation: "publish",
      queue,
      reason: "BodyTooLarge",
      detail: `the body has ${body.length} bytes, the limit is ${limit}`,
      remedy: "Send a smaller body"
    }),
  notTransaction: (context, detail, remedy, cause) =>
    new BrokerError.BrokerError({ broker, reason: "Unsupported", ...context, detail, remedy, cause }),
  misconfigured: (detail, remedy, operation = "open") =>
    new BrokerError.BrokerError({
      broker,
      operation,
      reason: "ConnectionFailed",
      detail,
      remedy,
      isMisconfigured: true
    })
})
