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
import { BrokerError } from "@requeue/core/port"
import * as Result from "effect/Result"
import { isRegion } from "./address.ts"

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
const address = /^https?:\/\/([^/]+)\/(\d{12})\/([^/]+)$/

/**
 * The region in the host of a queue's URL. There are hosts of several forms; the oldest names no region, and is that of
 * the first one. https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
 */
const regionIn = (host: string): string | undefined =>
  host === "queue.amazonaws.com" ? "us-east-1" : host.split(".").find(isRegion)

/** The account, the region and the name in the account, as far as the text says. */
const split = (queue: string): readonly [region: string | undefined, account: string | undefined, local: string] => {
  const [, region, owner, name] = arn.exec(queue) ?? []
  if (name !== undefined) return [region, owner, name]
  const [, host = "", account, local = queue] = address.exec(queue) ?? []
  return [regionIn(host), account, local]
}

/** How to get at a queue whose account is told: only its own account can create it. */
export const inAccount = (account: string): string =>
  `Create it with credentials of account ${account}, and allow this identity to use it; ` +
  "or leave the account out of the queue's name and of the connection's URL, for a queue of the identity's own account"

/** Reads a queue's name, ARN or URL; fails with `Unsupported` when SQS takes no such name. */
export const parse = (queue: string): Result.Result<Name, BrokerError.BrokerError> => {
  const [region, account, local] = split(queue)
  const [first = "", ...rest] = local.split(".")
  const fifo = rest.includes("fifo")
  const name = [first, ...rest.filter((part) => part !== "fifo")].join("-") + (fifo ? ".fifo" : "")
  if (!/^[A-Za-z0-9_-]+(\.fifo)?$/.test(name)) {
    return refuse(queue, local === "" || name === ".fifo" ? "the name is empty" : "SQS refuses characters of this name")
  }
  if (name.length > limit) return refuse(queue, `${name} has ${name.length} characters, SQS allows ${limit}`)
  return Result.succeed({ name, fifo, account, region })
}
