/**
 * Converts the program's names to names on SQS. Pure.
 *
 * A name on SQS has up to 80 letters, digits, hyphens and underscores, including the `.fifo` of a FIFO queue. The
 * core's names have dots (`orders.dlq`): each becomes a hyphen, and `.fifo` moves to the end, because a FIFO queue's
 * dead-letter queue must be FIFO.
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

/** A parsed queue name. */
export interface Name {
  /** The name on SQS. */
  readonly name: string
  readonly fifo: boolean
  /** The account that owns the queue; `undefined` if not in the name. */
  readonly account: string | undefined
  /** The region of the queue; `undefined` if not in the name. */
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
 * Returns the region in the host of a queue's URL. Hosts have several forms; the oldest has no region, and means the
 * first region. https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
 */
const regionIn = (host: string): string | undefined =>
  host === "queue.amazonaws.com" ? "us-east-1" : host.split(".").find(isRegion)

/** Splits a name into region, account and local name, if present. */
const split = (queue: string): readonly [region: string | undefined, account: string | undefined, local: string] => {
  const [, region, owner, name] = arn.exec(queue) ?? []
  if (name !== undefined) return [region, owner, name]
  const [, host = "", account, local = queue] = address.exec(queue) ?? []
  return [regionIn(host), account, local]
}

/** Returns the remedy for a missing queue with an account in its name: only that account can create it. */
export const inAccount = (account: string): string =>
  `Create it with credentials of account ${account}, and allow this identity to use it; ` +
  "or leave the account out of the queue's name and of the connection's URL, for a queue of the identity's own account"

/** Parses a queue's name, ARN or URL. Fails with `Unsupported` if SQS does not accept the name. */
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
