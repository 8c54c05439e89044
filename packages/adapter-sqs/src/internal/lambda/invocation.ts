/** One invocation of a Lambda function as a broker that has the event's messages and no others. */
import { type Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../SqsOptions.ts"
import * as Capabilities from "../capabilities.ts"
import type { Message } from "../client.ts"
import * as Subscribe from "./subscribe.ts"

/** An invocation under way. */
export interface Invocation {
  readonly broker: Broker.Service
  /** Ends when every message is done, or is known to come again. */
  readonly answered: Effect.Effect<void>
  readonly isDone: (message: Message) => boolean
}

/** The capabilities of SQS without leases, since the queue's visibility timeout outlasts the function. */
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
      remedy: "Use SqsBroker beside it"
    })
  )
)

/** The broker of one invocation. `now` is in milliseconds since the epoch. */
export const make = (messages: ReadonlyArray<Message>, now: number, env: Subscribe.Invocation): Invocation => {
  // By themselves, whatever ids and receipt handles they have: one that is not known by its own would be deleted unrun.
  const open = new Set(messages)
  const done = new Set<Message>()
  // The messages are here already, so that no connection can be lost.
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
