/** One `ReceiveMessage`: always with all attributes, because without them every delivery looks like the first. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import type { Settings } from "../../SqsOptions.ts"
import { type Client, type Message, polls } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"

export type Receive = (
  count: number,
  on: {
    readonly received: (messages: ReadonlyArray<Message>) => void
    readonly failed: (error: BrokerError.BrokerError) => void
  }
) => void

export const make = (env: {
  readonly client: Client
  readonly queue: string
  readonly url: () => string
  readonly settings: Pick<Settings, "waitTime" | "visibilityTimeout" | "requestTimeout">
  readonly signal: AbortSignal
}): Receive => {
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
      ({ Messages = [] }) => on.received(Messages),
      (cause: unknown) => on.failed(toBrokerError(cause, { operation: "receive", queue: env.queue }))
    )
  }
}
