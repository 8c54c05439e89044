/** One invocation of a Lambda function, as a broker with only the event's messages. */
import { type Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../SqsOptions.ts"
import * as Capabilities from "../capabilities.ts"
import type { Message } from "../client.ts"
import * as Subscribe from "./subscribe.ts"

/** A running invocation. */
export interface Invocation {
  readonly broker: Broker.Service
  /** Ends when every message is completed, or known to be redelivered. */
  readonly answered: Effect.Effect<void>
  readonly isDone: (message: Message) => boolean
}

/** Returns SQS's capabilities without leases, since the queue's visibility timeout outlasts the function. */
export const capabilities = (settings: Settings): Broker.Service["capabilities"] => ({
  ...Capabilities.make(settings),
  lease: undefined,
  settleWait: 0
})

const onlyConsumes = Effect.suspend(() =>
  Effect.fail(
    new BrokerError.BrokerError({
      broker: "sqs",
      operation: "invocation",
      reason: "Unsupported",
      detail: "an invocation has its own messages and nothing else",
      remedy: "Use SqsBroker for other calls"
    })
  )
)

/** Makes the broker of one invocation. `now` is in milliseconds since the epoch. */
export const make = (messages: ReadonlyArray<Message>, now: number, env: Subscribe.Invocation): Invocation => {
  // A set of the objects, because ids and receipt handles may be equal: a confused message would be deleted without a
  // run.
  const open = new Set(messages)
  const done = new Set<Message>()
  // The messages have already arrived, so no connection can be lost.
  const connection = { state: "up", since: now } as const
  let wake = () => {}
  return {
    broker: {
      capabilities: capabilities(env.settings),
      connection: () => connection,
      publish: () => onlyConsumes,
      subscribe: (options) =>
        Subscribe.subscribe(messages, options, env, (message, isDone) => {
          if (isDone) done.add(message)
          open.delete(message)
          if (open.size === 0) wake()
        }),
      admin: { counts: () => onlyConsumes, browse: () => onlyConsumes, purge: () => onlyConsumes }
    },
    answered: Effect.callback<void>((resume) => {
      wake = () => resume(Effect.void)
      if (open.size === 0) wake()
    }),
    isDone: (message) => done.has(message)
  }
}
