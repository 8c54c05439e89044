/** Counts, looks into and empties queues. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import type { Channel } from "../client.ts"
import type { Declarer } from "../declare/declare.ts"
import type { Management } from "./management.ts"
import { toDelivery } from "../consume/toDelivery.ts"

/** Milliseconds that returned messages may take to be counted again, and between two counts. */
const recountTimeout = 1000
const recountInterval = 10

/** The broker's `admin`. */
export const make = (env: {
  /** The queue as it is, as far as it is known. */
  readonly found: (queue: string) => RabbitMqQueue
  readonly declarer: Declarer
  readonly management: Management | undefined
  readonly serverVersion: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}): Broker.Admin => {
  const { declarer, management } = env

  /** Takes messages, and puts them back in the order in which they were. */
  const look = async (channel: Channel, queue: string, limit: number): Promise<ReadonlyArray<Delivery.Delivery>> => {
    const seen: Array<Delivery.Delivery> = []
    while (seen.length < limit) {
      const message = await channel.get(queue)
      if (message === false) break
      const { type } = env.found(queue)
      const source = { type, serverVersion: env.serverVersion(), keepsNotBefore: false, now: env.now }
      const { attempts, body, headers, metadata, redelivered } = toDelivery(message, source)
      seen.push({ body, headers, attempts, metadata, redelivered, receipt: undefined })
    }
    if (seen.length > 0) channel.nackAll(true)
    return seen
  }

  /**
   * Waits until `count` messages are counted again. A quorum queue takes messages back in its own time: without this, a
   * redrive that begins right after a look would count too few and end early. Other consumers may keep the number down,
   * so that the wait ends without it as well.
   */
  const returned = (queue: string, count: number): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.gen(function* () {
      for (let waited = 0; waited < recountTimeout; waited += recountInterval) {
        const { messageCount } = yield* declarer.onChannel("peek", queue, (channel) => channel.checkQueue(queue))
        if (messageCount >= count) return
        yield* Effect.sleep(Duration.millis(recountInterval))
      }
    })

  /** Answers `otherwise` for a queue that does not exist. */
  const orMissing = <A>(
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
        const { messageCount } = yield* orMissing(
          declarer.onChannel("counts", queue, (channel) => channel.checkQueue(queue)),
          { messageCount: 0, queue, consumerCount: 0 }
        )
        const inFlight = management === undefined ? undefined : yield* management.unacknowledged(queue)
        return { ready: messageCount, inFlight, delayed: undefined }
      }),
    peek: (queue, limit) =>
      orMissing(
        Effect.tap(
          declarer.onChannel("peek", queue, (channel) => look(channel, queue, limit)),
          (seen) => (seen.length === 0 ? Effect.void : returned(queue, seen.length))
        ),
        []
      ),
    purge: (queue) =>
      orMissing(
        Effect.map(
          declarer.onChannel("purge", queue, (channel) => channel.purgeQueue(queue)),
          ({ messageCount }) => messageCount
        ),
        0
      )
  }
}
