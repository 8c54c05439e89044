/** Messages that a former `waitLoop` has left, and that no consumer moves on any more. */
import type { BrokerError, Plan } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"

/** The finding about such messages, where there are any. */
export const leftBehind = (
  { onChannel }: Pick<Declarer, "onChannel">,
  { queue, waiting }: Pick<RabbitMqPlan.Plan, "queue" | "waiting">,
  settings: Settings
): Effect.Effect<ReadonlyArray<Plan.Finding>, BrokerError.BrokerError> => {
  const name = Names.waiting(settings, queue)
  if (waiting === name) return Effect.succeed([])
  return onChannel("inspect", name, (channel) => channel.checkQueue(name)).pipe(
    Effect.map(({ consumerCount, messageCount }): ReadonlyArray<Plan.Finding> => {
      if (messageCount === 0 || consumerCount > 0) return []
      const detail =
        `${messageCount} messages wait in ${name} since the topology was changed, and nothing moves them on: ` +
        "run requeue clean, with the option management"
      return [{ about: "left behind", verdict: "bad", detail }]
    }),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing" || reason === "AccessRefused",
      () => Effect.succeed([])
    )
  )
}
