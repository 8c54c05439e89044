/**
 * Long polls: one `ReceiveMessage` each. It requests all attributes: without them every delivery would look like the
 * first.
 *
 * On a FIFO queue each poll has an id and can be repeated: SQS then returns the messages of a lost response again, with
 * the same handles. Otherwise these would block their groups until the visibility timeout ends. SQS refuses an id that
 * it cannot repeat, for example after a throttled call; a new poll follows.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-receiverequestattemptid-request-parameter.html
 */
import { BrokerError } from "@requeue/core/port"
import type * as Effect from "effect/Effect"
import type { Settings } from "../../SqsOptions.ts"
import type { Client, Message } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"
import { messagesIn } from "./received.ts"
import type { Sources } from "./sources.ts"

/** Polls for up to `count` messages. Calls back once, with the messages or the error. */
export type Receive<M> = (
  count: number,
  on: {
    readonly received: (messages: ReadonlyArray<M>) => void
    readonly failed: (error: BrokerError.BrokerError) => void
  }
) => void

/** Milliseconds for which SQS knows the id of a receive: five minutes, less the network's time. */
const known = 240_000

/** A receive of a FIFO queue. */
interface Attempt {
  readonly id: string
  readonly count: number
  /** Until when it can be repeated, in monotonic milliseconds. */
  readonly until: number
}

/** Makes the polls of one queue. They are aborted when the client closes. */
export const make = (env: {
  readonly client: Pick<Client, "polls">
  readonly queue: string
  readonly fifo: boolean
  readonly url: () => string
  readonly settings: Pick<Settings, "waitTime" | "visibilityTimeout">
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  readonly sources: Pick<Sources, "knows" | "learn">
  /** Runs an effect by the program's clock. */
  readonly run: <A>(effect: Effect.Effect<A>) => Promise<A>
}): Receive<Message> => {
  const { elapsed, fifo, queue } = env
  const { visibilityTimeout, waitTime } = env.settings
  const poll = env.client.polls(waitTime)
  /** Receives whose response was lost. */
  let lost: ReadonlyArray<Attempt> = []

  const ask = (count: number, id: string | undefined) =>
    poll({
      QueueUrl: env.url(),
      MaxNumberOfMessages: count,
      WaitTimeSeconds: waitTime / 1000,
      VisibilityTimeout: visibilityTimeout / 1000,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
      ReceiveRequestAttemptId: id
    })

  /** Returns a lost receive that fits `count`, or a new one. */
  const next = (count: number): Attempt => {
    lost = lost.filter(({ until }) => elapsed() < until)
    const again = lost.find((attempt) => attempt.count <= count)
    lost = lost.filter((attempt) => attempt !== again)
    // Once the lease has ended, other consumers may have the messages.
    return again ?? { id: crypto.randomUUID(), count, until: elapsed() + waitTime + Math.min(known, visibilityTimeout) }
  }

  const receive = async (
    count: number,
    isRefused = false
  ): Promise<ReadonlyArray<Message> | BrokerError.BrokerError> => {
    const attempt = fifo ? next(count) : undefined
    try {
      const messages = messagesIn(await ask(attempt?.count ?? count, attempt?.id))
      if (!env.sources.knows(messages)) await env.run(env.sources.learn(messages))
      return messages
    } catch (cause) {
      const error = toBrokerError(cause, { operation: "receive", queue })
      if (!isRefused && error.detail.includes("ReceiveRequestAttemptId")) return receive(count, true)
      if (attempt !== undefined && BrokerError.isDoubtful(error)) lost = [...lost, attempt]
      return error
    }
  }
  return (count, on) =>
    void receive(count).then((result) => {
      if (result instanceof BrokerError.BrokerError) on.failed(result)
      else on.received(result)
    })
}
