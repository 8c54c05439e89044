/** What operators see and do. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Channel } from "../client.ts"
import type { Declarer } from "../declare/declare.ts"
import type { Management } from "./management.ts"
import { toDelivery } from "../consume/toDelivery.ts"

/** Longest wait for what was looked at to be counted again, and between two looks, in milliseconds. */
const patience = 1000
const pause = 10

export const make = (env: {
  readonly settings: Settings
  readonly declarer: Declarer
  readonly management: Management | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}): Broker.Admin => {
  const { declarer, management, settings } = env

  /** Takes messages, and gives them back in the order in which they were. */
  const look = async (channel: Channel, queue: string, limit: number): Promise<ReadonlyArray<Delivery.Delivery>> => {
    const seen: Array<Delivery.Delivery> = []
    while (seen.length < limit) {
      const message = await channel.get(queue)
      if (message === false) break
      const context = { queueType: settings.queueType, keepsNotBefore: false, now: env.now }
      const { attempts, body, headers, metadata } = toDelivery(message, context)
      seen.push({ body, headers, attempts, metadata, receipt: undefined })
    }
    if (seen.length > 0) channel.nackAll(true)
    return seen
  }

  /**
   * A quorum queue takes messages back in its own time, and until then it counts too few: a redrive that begins right
   * after a look would end early. Where others consume, the number may never be reached.
   */
  const returned = (queue: string, count: number): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      for (let waited = 0; waited < patience; waited += pause) {
        const { messageCount } = yield* declarer.onChannel("peek", queue, (channel) => channel.checkQueue(queue))
        if (messageCount >= count) return
        yield* Effect.sleep(Duration.millis(pause))
      }
    })

  const empty = <A>(
    effect: Effect.Effect<A, BrokerError.BrokerError>,
    otherwise: A
  ): Effect.Effect<A, BrokerError.BrokerError> =>
    Effect.catchIf(
      effect,
      (error) => error.reason === "QueueMissing",
      () => Effect.succeed(otherwise)
    )

  return {
    counts: (queue) =>
      Effect.gen(function* () {
        const { messageCount } = yield* empty(
          declarer.onChannel("counts", queue, (channel) => channel.checkQueue(queue)),
          { messageCount: 0, queue, consumerCount: 0 }
        )
        const inFlight = management === undefined ? undefined : yield* management.unacknowledged(queue)
        return { ready: messageCount, inFlight, delayed: undefined }
      }),
    peek: (queue, limit) =>
      empty(
        Effect.tap(
          declarer.onChannel("peek", queue, (channel) => look(channel, queue, limit)),
          (seen) => (seen.length === 0 ? Effect.void : returned(queue, seen.length))
        ),
        []
      ),
    purge: (queue) =>
      empty(
        Effect.map(
          declarer.onChannel("purge", queue, (channel) => channel.purgeQueue(queue)),
          ({ messageCount }) => messageCount
        ),
        0
      )
  }
}
