/** Calls about queues: they are found by name, created, and their attributes are read and set. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Client } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { Attributes, Queue as PlannedQueue } from "./objects.ts"

/** A queue that exists. */
export interface Queue {
  readonly url: string
  readonly fifo: boolean
}

/** The calls of the driver. */
export type QueueClient = Pick<Client, "getQueueUrl" | "createQueue" | "getQueueAttributes" | "setQueueAttributes">

/** The calls, and the queues that they have found. A queue that is missing fails with `QueueMissing`. */
export interface QueueCalls {
  /** A queue that was found before, by the name that the program uses. */
  readonly known: (queue: string) => Queue | undefined
  /** Finds a queue, once. */
  readonly locate: (planned: PlannedQueue) => Effect.Effect<Queue, BrokerError.BrokerError>
  readonly create: (planned: PlannedQueue, tags: Attributes) => Effect.Effect<void, BrokerError.BrokerError>
  readonly attributes: (planned: PlannedQueue) => Effect.Effect<Attributes, BrokerError.BrokerError>
  readonly change: (planned: PlannedQueue, attributes: Attributes) => Effect.Effect<void, BrokerError.BrokerError>
  readonly forget: (queue: string) => void
}

const ask = <A>(operation: string, queue: string, run: () => Promise<A>): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) })

/**
 * No queue is known yet. `account` owns the queues whose name tells no account; default: the account of the
 * credentials.
 */
export const make = (client: QueueClient, account: string | undefined): QueueCalls => {
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
      const owner = name.account ?? account
      const request = { QueueName: name.name, ...(owner === undefined ? {} : { QueueOwnerAWSAccountId: owner }) }
      return Effect.map(
        ask("find", queue, () => client.getQueueUrl(request)),
        ({ QueueUrl }) => remember(planned, QueueUrl!)
      )
    })

  return {
    known: (queue) => known.get(queue),
    locate,
    create: (planned, tags) =>
      Effect.map(
        ask("create", planned.queue, () =>
          client.createQueue({ QueueName: planned.name.name, Attributes: planned.attributes, tags })
        ),
        ({ QueueUrl }) => void remember(planned, QueueUrl!)
      ),
    attributes: (planned) =>
      Effect.flatMap(locate(planned), ({ url }) =>
        ask("verify", planned.queue, () => client.getQueueAttributes({ QueueUrl: url, AttributeNames: ["All"] }))
      ).pipe(
        Effect.map(({ Attributes = {} }) => Attributes),
        Effect.tapError(({ reason }) => Effect.sync(() => reason === "QueueMissing" && known.delete(planned.queue)))
      ),
    change: (planned, attributes) =>
      Effect.flatMap(locate(planned), ({ url }) =>
        ask("create", planned.queue, () => client.setQueueAttributes({ QueueUrl: url, Attributes: attributes }))
      ),
    forget: (queue) => void known.delete(queue)
  }
}
