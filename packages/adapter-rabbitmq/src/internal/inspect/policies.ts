/**
 * Policies of the server that change the queues of the adapter: the pattern of a policy may match their names as well.
 * https://www.rabbitmq.com/docs/policies
 */
import { type BrokerError, Delay } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import type { Management, QueueInfo } from "./management.ts"

/** The harm that a policy does to a queue of the plan. */
export interface Harm {
  readonly queue: string
  /** Whether delays of this queue end early. */
  readonly isEarly: boolean
  readonly detail: string
}

const ttl = "x-message-ttl"
const remedy = "Exclude the queue from the pattern of the policy or operator policy"

/** The harm to one queue, which was declared with `planned` arguments. Pure. */
export const harmsOf = (
  { arguments: planned, name }: RabbitMqPlan.NativeQueue,
  { policy, type }: Pick<QueueInfo, "policy" | "type">,
  serverVersion: string
): ReadonlyArray<Harm> => {
  const found = RabbitMqQueue.managed(name, { arguments: planned, policy, type }, serverVersion, true)
  const { [ttl]: effective, ...others } = found.arguments
  const own = planned[ttl]
  const isEarly = typeof own === "number" && typeof effective === "number" && effective < own
  const early = `queue ${name}: a policy of the server ends delays of ${Delay.format(Number(own))} after ${Delay.format(Number(effective))}`
  const args = own === undefined ? found.arguments : others
  return [
    ...(isEarly ? [{ queue: name, isEarly, detail: `${early}. ${remedy}` }] : []),
    ...RabbitMqQueue.warnings({ ...found, arguments: args })
      .filter((text) => !RabbitMqQueue.warnings({ ...found, arguments: planned }).includes(text))
      .map((text) => ({ queue: name, isEarly: false, detail: `${text}, by a policy of the server. ${remedy}` }))
  ]
}

/** The harm to the queues of a plan but for its own; none where no management interface reports policies. */
export const inspect = (
  management: Management | undefined,
  { objects, onDemand, queue }: Pick<RabbitMqPlan.Plan, "objects" | "onDemand" | "queue">,
  serverVersion: string
): Effect.Effect<ReadonlyArray<Harm>, BrokerError.BrokerError> =>
  management === undefined
    ? Effect.succeed([])
    : Effect.map(management.queues, (known) => {
        const policies = new Map(known.map((info) => [info.name, info]))
        return [...objects, ...onDemand].flatMap((object) => {
          if (object._tag !== "Queue" || object.name === queue || object.assert === "never") return []
          const info = policies.get(object.name)
          return info === undefined ? [] : harmsOf(object, info, serverVersion)
        })
      })
