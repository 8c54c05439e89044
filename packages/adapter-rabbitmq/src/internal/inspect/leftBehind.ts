/** Messages of a former `waitLoop` topology that no consumer moves on. */
import { type BrokerError, Log, type Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"

/** The sentence about such messages: empty if there are none, `undefined` if their queue does not exist. */
const sentence = (
  { onChannel }: Pick<Declarer, "onChannel">,
  { queue, waiting }: Pick<RabbitMqPlan.Plan, "queue" | "waiting">,
  settings: Settings
): Effect.Effect<string | undefined, BrokerError.BrokerError> => {
  const name = Names.waiting(settings, queue)
  if (waiting === name) return Effect.undefined
  return onChannel("inspect", name, (channel) => channel.checkQueue(name)).pipe(
    Effect.map(({ consumerCount, messageCount }) =>
      messageCount === 0 || consumerCount > 0
        ? ""
        : `${messageCount} messages wait in ${name} since the topology was changed, and no consumer moves them on: ` +
          "set the option management and run requeue clean"
    ),
    Effect.catchIf(
      ({ reason }) => reason === "QueueMissing" || reason === "AccessRefused",
      () => Effect.undefined
    )
  )
}

/** The finding about such messages, if there are any. */
export const leftBehind = (
  ...about: Parameters<typeof sentence>
): Effect.Effect<ReadonlyArray<Plan.Finding>, BrokerError.BrokerError> =>
  Effect.map(sentence(...about), (detail = "") =>
    detail === "" ? [] : [{ about: "left behind", verdict: "bad", detail }]
  )

/**
 * Warns of such messages once. Run it repeatedly, because messages that are still delayed arrive later. If their queue did not exist
 * at first, it stops asking.
 */
export const warn = (...about: Parameters<typeof sentence>): Effect.Effect<void> => {
  let isOver = false
  return Effect.suspend(() => {
    if (isOver) return Effect.void
    return Effect.matchEffect(sentence(...about), {
      onFailure: () => Effect.void,
      onSuccess: (detail) => {
        isOver = detail !== ""
        return detail === undefined || detail === "" ? Effect.void : Log.warning(detail, { queue: about[1].queue })
      }
    })
  })
}
