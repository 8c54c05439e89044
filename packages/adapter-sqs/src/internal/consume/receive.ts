/**
 * Long polls: one `ReceiveMessage` each. It asks for all attributes; without them every delivery looks like the first.
 */
import type { BrokerError } from "@requeue/core/adapter-kit"
import type { Settings } from "../../SqsOptions.ts"
import { type Client, type Message, polls } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"

/** Polls for up to `count` messages. Calls back once, with the messages that came or with what went wrong. */
export type Receive<M> = (
  count: number,
  on: {
    readonly received: (messages: ReadonlyArray<M>) => void
    readonly failed: (error: BrokerError.BrokerError) => void
  }
) => void

/** Polls of one queue. `signal` cuts off those that are under way. */
export const make = (env: {
  readonly client: Client
  readonly queue: string
  readonly url: () => string
  readonly settings: Pick<Settings, "waitTime" | "visibilityTimeout" | "requestTimeout">
  readonly signal: AbortSignal
  /** Prepares for messages before they are told. It does not fail. */
  readonly learn: (messages: ReadonlyArray<Message>) => Promise<void>
}): Receive<Message> => {
  const { requestTimeout, visibilityTimeout, waitTime } = env.settings
  const poll = polls(env.client, { requestTimeout: waitTime + requestTimeout, abortSignal: env.signal })
  return (count, on) => {
    poll({
      QueueUrl: env.url(),
      MaxNumberOfMessages: count,
      WaitTimeSeconds: waitTime / 1000,
      VisibilityTimeout: visibilityTimeout / 1000,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"]
    }).then(
      async ({ Messages = [] }) => {
        await env.learn(Messages)
        on.received(Messages)
      },
      (cause: unknown) => on.failed(toBrokerError(cause, { operation: "receive", queue: env.queue }))
    )
  }
}
