/** Plans of queues for a server, by what they are there. */
import { type BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import * as Found from "./found.ts"

/** A queue to plan; without a policy, as its producers see it. */
export interface Request {
  readonly queue: string
  readonly retry?: RetryPolicy.RetryPolicy | undefined
}

/** The plan of a queue for a server of this version. */
export const planFor = (
  { queue, retry }: Request,
  settings: Settings,
  version: string,
  found?: RabbitMqQueue.RabbitMqQueue
): Effect.Effect<RabbitMqPlan.Plan, ConfigurationError.ConfigurationError> => {
  const deadLetterQueues = retry === undefined ? [] : RetryPolicy.deadLetterQueues(retry, queue)
  return ConfigurationError.orFail(RabbitMqPlan.make({ queue, retry, deadLetterQueues, found }, settings, version))
}

/** A queue as it is; where it is missing, as the options tell it. */
export const find = (
  env: Found.Dependencies,
  queue: string
): Effect.Effect<RabbitMqQueue.RabbitMqQueue, BrokerError.BrokerError> =>
  Effect.catchIf(
    Found.find(env, queue),
    ({ reason }) => reason === "QueueMissing",
    () => Effect.sync(() => RabbitMqPlan.assumed(queue, env.settings))
  )
