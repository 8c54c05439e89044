/** The consumer of a `waitLoop`'s waiting queue: sends due messages to the work queue and the others around again. */
import { type BrokerError, Metadata } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assumed, type Plan } from "../../RabbitMqPlan.ts"
import type { Sender } from "../publish/sender.ts"
import { originalOf, type Received } from "./receipt.ts"
import type * as Opening from "./opening.ts"
import * as Sessions from "./sessions.ts"

/** The broker's parts for subscriptions that send messages on. */
export interface Dependencies extends Opening.Dependencies {
  readonly sender: Sender
}

/** Messages that are moved at a time. */
const credit = 100

/** The pause before a message that could not be moved is retried. */
const pause = Duration.seconds(1)

/** Moves the messages of `waiting` on until the scope closes. */
export const run = (
  plan: Plan,
  waiting: string,
  env: Dependencies
): Effect.Effect<void, BrokerError.BrokerError, Scope.Scope> => {
  const onDelivery = ({ body, headers, metadata, receipt }: Received): void => {
    const { settler } = receipt
    if (!settler.claim(receipt)) return
    const original = originalOf(receipt)
    const rest = Metadata.wait(metadata, env.now(), Number.POSITIVE_INFINITY)
    const due = rest === 0 ? { ...metadata, notBefore: 0 } : metadata
    const message = { queue: plan.queue, body, headers, delay: rest, metadata: due }
    env.fork(
      Effect.matchEffect(env.sender.send([{ message, plan, original }]), {
        onSuccess: () => Effect.sync(() => settler.ack([receipt])),
        // An immediate requeue would be redelivered at once, and would fail again.
        onFailure: () =>
          Effect.delay(
            Effect.sync(() => settler.requeue(receipt, "Nack")),
            pause
          )
      })
    )
  }
  const first = { ...plan, found: assumed(waiting, env.settings) }
  const options = {
    first,
    again: Effect.succeed(first),
    look: Effect.void,
    keepsNotBefore: true,
    onDelivery,
    onReconnect: () => {}
  }
  return Effect.map(Sessions.make(options, env), (sessions) => sessions.credit(credit))
}
