/** Calls about queues: find them by name, create them, read and set their attributes. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { textIn, textListIn, textsIn } from "../answer.ts"
import type { Client } from "../client.ts"
import * as Names from "../names.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { Attributes, Queue as PlannedQueue } from "./objects.ts"

/** A queue that exists. */
export interface Queue {
  readonly url: string
  readonly fifo: boolean
}

/** The calls of the driver. */
export type QueueClient = Pick<
  Client,
  | "getQueueUrl"
  | "createQueue"
  | "getQueueAttributes"
  | "setQueueAttributes"
  | "listDeadLetterSourceQueues"
  | "accountId"
>

/** The calls, and the queues that they have found. They fail with `QueueMissing` if a queue is missing. */
export interface QueueCalls {
  /** Returns a queue that was found before, by the program's name. */
  readonly known: (queue: string) => Queue | undefined
  /** Finds a queue, once. */
  readonly locate: (planned: PlannedQueue) => Effect.Effect<Queue, BrokerError.BrokerError>
  /**
   * Whether the queue belongs to the account of the credentials, or has no account in its name; false if unknown. SQS
   * creates and changes queues only in that account.
   */
  readonly isOurs: (planned: PlannedQueue) => Effect.Effect<boolean>
  readonly create: (planned: PlannedQueue, tags: Attributes) => Effect.Effect<void, BrokerError.BrokerError>
  readonly attributes: (planned: PlannedQueue) => Effect.Effect<Attributes, BrokerError.BrokerError>
  /** Returns the URLs of the queues from which SQS moves messages to this one. */
  readonly sources: (planned: PlannedQueue) => Effect.Effect<ReadonlyArray<string>, BrokerError.BrokerError>
  /** Returns the attributes of another queue that this one depends on. */
  readonly attributesAt: (planned: PlannedQueue) => (url: string) => Effect.Effect<Attributes, BrokerError.BrokerError>
  readonly change: (planned: PlannedQueue, attributes: Attributes) => Effect.Effect<void, BrokerError.BrokerError>
  readonly forget: (queue: string) => void
}

const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

/** Returns the account of the credentials, if their source reports it. Other errors are left to the first call. */
const ownAccount = ({ accountId }: QueueClient): Promise<string | undefined> => accountId().catch(() => undefined)

/** For a queue in another account, SQS does not distinguish a missing queue from a missing permission. */
const explained =
  ({ name: { account, name } }: PlannedQueue) =>
  (error: BrokerError.BrokerError): BrokerError.BrokerError =>
    account === undefined || error.reason !== "QueueMissing"
      ? error
      : new BrokerError.BrokerError({
          broker: "sqs",
          operation: error.operation,
          queue: error.queue,
          reason: "QueueMissing",
          detail: `there is no queue ${name} in account ${account}, or this identity may not use it`,
          remedy: Names.inAccount(account)
        })

/** Starts without known queues. */
export const make = (client: QueueClient): QueueCalls => {
  const known = new Map<string, Queue>()

  const remember = ({ name, queue }: PlannedQueue, url: string): Queue => {
    const found = { url, fifo: name.fifo }
    known.set(queue, found)
    return found
  }

  const locate: QueueCalls["locate"] = (planned) =>
    Effect.suspend(() => {
      const { name, queue } = planned
      const before = known.get(queue)
      if (before !== undefined) return Effect.succeed(before)
      const owner = name.account === undefined ? {} : { QueueOwnerAWSAccountId: name.account }
      const url = async () => textIn(await client.getQueueUrl({ QueueName: name.name, ...owner }), "QueueUrl")
      return ask("find", queue, url).pipe(
        Effect.map((found) => remember(planned, found)),
        Effect.mapError(explained(planned))
      )
    })

  const describe = ({ queue }: PlannedQueue, QueueUrl: string): Effect.Effect<Attributes, BrokerError.BrokerError> =>
    Effect.map(
      ask("verify", queue, () => client.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })),
      (answer) => textsIn(answer, "Attributes")
    )

  return {
    known: (queue) => known.get(queue),
    locate,
    isOurs: ({ name: { account } }) =>
      account === undefined
        ? Effect.succeed(true)
        : Effect.promise(() => ownAccount(client).then((own) => own === account)),
    create: (planned, tags) =>
      Effect.map(
        ask("create", planned.queue, async () => {
          const asked = { QueueName: planned.name.name, Attributes: planned.attributes, tags }
          return textIn(await client.createQueue(asked), "QueueUrl")
        }),
        (url) => void remember(planned, url)
      ),
    attributes: (planned) =>
      Effect.flatMap(locate(planned), ({ url }) => describe(planned, url)).pipe(
        Effect.mapError(explained(planned)),
        Effect.tapError(({ reason }) => Effect.sync(() => reason === "QueueMissing" && known.delete(planned.queue)))
      ),
    sources: (planned) =>
      Effect.flatMap(locate(planned), ({ url }) =>
        Effect.map(
          ask("verify", planned.queue, () => client.listDeadLetterSourceQueues({ QueueUrl: url })),
          (answer) => textListIn(answer, "queueUrls")
        )
      ),
    attributesAt: (planned) => (url) => describe(planned, url),
    change: (planned, attributes) =>
      Effect.flatMap(locate(planned), ({ url }) =>
        ask("create", planned.queue, () => client.setQueueAttributes({ QueueUrl: url, Attributes: attributes }))
      ),
    forget: (queue) => void known.delete(queue)
  }
}
