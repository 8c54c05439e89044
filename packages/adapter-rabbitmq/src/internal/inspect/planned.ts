/** Plans of queues as they are on a server. */
import { type BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import type * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import * as Found from "./found.ts"

/** A queue to plan. Without a policy, the plan is that of its producers. */
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

/** A queue as it is; if it is missing, as the options describe it. */
export const find = (
  env: Found.Dependencies,
  queue: string
): Effect.Effect<RabbitMqQueue.RabbitMqQueue, BrokerError.BrokerError> =>
  Effect.catchIf(
    Found.find(env, queue),
    ({ reason }) => reason === "QueueMissing",
    () => Effect.sync(() => RabbitMqPlan.assumed(queue, env.settings))
  )
