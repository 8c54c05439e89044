/**
 * From the names of the program to those of SQS. Pure.
 *
 * SQS allows letters, digits, hyphens and underscores, 80 of them, and `.fifo` at the end. The core's names have dots
 * (`orders.dlq`): each becomes a hyphen, and `.fifo` stays the end, so that a FIFO queue's dead-letter queue is FIFO.
 *
 * | name | queue |
 * | --- | --- |
 * | `orders` | `orders` |
 * | `orders.dlq` | `orders-dlq` |
 * | `orders.fifo` | `orders.fifo` |
 * | `orders.fifo.dlq` | `orders-dlq.fifo` |
 * | `arn:aws:sqs:eu-west-1:1234:orders.dlq` | `orders-dlq` of account 1234 |
 * | `https://sqs.eu-west-1.amazonaws.com/1234/orders.dlq` | the same |
 */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Result from "effect/Result"

/** The longest name, `.fifo` included. */
const limit = 80

export interface Name {
  /** As SQS knows it. */
  readonly name: string
  readonly fifo: boolean
  /** The account that owns the queue, where the name says so. */
  readonly account: string | undefined
  /** The region, where the name says so. */
  readonly region: string | undefined
}

const refuse = (queue: string, detail: string): Result.Result<never, BrokerError.BrokerError> =>
  Result.fail(
    new BrokerError.BrokerError({
      broker: "sqs",
      operation: "name",
      queue,
      reason: "Unsupported",
      detail,
      remedy: `Use 1 to ${limit} letters, digits, hyphens, underscores or dots; dots become hyphens, .fifo asks for a FIFO queue`
    })
  )

const arn = /^arn:[a-z-]+:sqs:([a-z0-9-]+):(\d{12}):(.+)$/
const address = /^https?:\/\/(?:sqs\.([a-z0-9-]+)\.)?[^/]+\/(\d{12})\/([^/]+)$/

/** Reads a queue's name, ARN or URL. */
export const parse = (queue: string): Result.Result<Name, BrokerError.BrokerError> => {
  const [, region, account, local = queue] = arn.exec(queue) ?? address.exec(queue) ?? []
  const [first = "", ...rest] = local.split(".")
  const fifo = rest.includes("fifo")
  const name = [first, ...rest.filter((part) => part !== "fifo")].join("-") + (fifo ? ".fifo" : "")
  if (!/^[A-Za-z0-9_-]+(\.fifo)?$/.test(name)) {
    return refuse(queue, local === "" || name === ".fifo" ? "the name is empty" : "SQS refuses characters of this name")
  }
  if (name.length > limit) return refuse(queue, `${name} has ${name.length} characters, SQS allows ${limit}`)
  return Result.succeed({ name, fifo, account, region })
}
