/** The consumer of a `waitLoop`'s waiting queue: messages that are due go to work, the others go round again. */
import { type BrokerError, Metadata } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assumed, type Plan } from "../../RabbitMqPlan.ts"
import type { Sender } from "../publish/sender.ts"
import { originalOf, type Received } from "./receipt.ts"
import type * as Opening from "./opening.ts"
import * as Sessions from "./sessions.ts"

/** The broker's own, for subscriptions that send messages on. */
export interface Dependencies extends Opening.Dependencies {
  readonly sender: Sender
}

/** Messages that are moved on at a time. */
const credit = 100

/** The time until a message that could not be moved on is tried again. */
const pause = Duration.seconds(1)

/** Moves the messages of `waiting` on for as long as the scope lives. */
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
        // It would be back at once, and refused again.
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
