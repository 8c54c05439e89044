/** Bounds the number of delayed messages of a queue without knowing the policy, from all delay queues that the server lists. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type * as RabbitMqPlan from "../../RabbitMqPlan.ts"
import * as DelayQueues from "./delayQueues.ts"
import type { Management } from "./management.ts"
import type { Passive } from "./passive.ts"

/** The broker's own. */
export interface Dependencies {
  readonly settings: Settings
  readonly passive: Passive
  readonly management: Management
  readonly plan: (request: RabbitMqPlan.Request) => Effect.Effect<RabbitMqPlan.Plan, BrokerError.BrokerError>
}

/**
 * Returns the largest possible number of delayed messages. The ready messages of a delay queue are exact. Messages that a browser
 * holds, that move to the next queue, or that the queue itself delays are counts of some seconds ago.
 */
export const of = (
  { management, passive, plan, settings }: Dependencies,
  queue: string
): Effect.Effect<number | undefined, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const planned = yield* plan({ queue })
    const listed = yield* Effect.orElseSucceed(management.queues, () => undefined)
    if (listed === undefined) return undefined
    const known = new Map(listed.map((info) => [info.name, info]))
    const places = DelayQueues.of(planned, settings, [...known.values()])
    const counts = yield* Effect.forEach(
      places.flatMap(({ name }) => known.get(name) ?? []),
      ({ held = 0, name, unacknowledged = 0 }) =>
        Effect.map(DelayQueues.ready(passive, name), (ready) => ready + unacknowledged + held),
      { concurrency: DelayQueues.atOnce }
    )
    const { delayed } = known.get(queue) ?? {}
    const isNative = planned.native !== undefined || settings.topology === "native"
    if (isNative && delayed === undefined) return undefined
    return counts.reduce((sum, count) => sum + count, delayed ?? 0)
  }).pipe(
    // Without the permission to read, the number is unknown.
    Effect.catchIf(
      ({ reason }) => reason === "AccessRefused",
      () => Effect.undefined
    )
  )
