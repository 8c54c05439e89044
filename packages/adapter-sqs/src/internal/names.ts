/**
 * From the names that programs use to those of SQS. Pure.
 *
 * A name on SQS has up to 80 letters, digits, hyphens and underscores, the `.fifo` at the end of a FIFO queue's
 * included. The core's names have dots (`orders.dlq`). Each becomes a hyphen, and `.fifo` moves to the end, so that a
 * FIFO queue's dead-letter queue is FIFO.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
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

/** Characters of the longest name, `.fifo` included. */
const limit = 80

/** The name of a queue, read. */
export interface Name {
  /** The name on SQS. */
  readonly name: string
  readonly fifo: boolean
  /** The account that owns the queue; `undefined` where the name does not say. */
  readonly account: string | undefined
  /** The region of the queue; `undefined` where the name does not say. */
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

/** Reads a queue's name, ARN or URL; fails with `Unsupported` when SQS takes no such name. */
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
