/** Brokers and consumers that lose the order of keys. */
import { type Broker, RetryPolicy } from "@requeue/core"
import { Outgoing, type Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { subscribed } from "../internal/mutants.ts"
import { rewiredMessage } from "../internal/rewired.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes what is published. */
const publishing = (
  name: string,
  kills: string,
  change: (message: Outgoing.Outgoing) => Outgoing.Outgoing
): Mutant => ({
  name,
  kills,
  broker: (broker) => ({ ...broker, publish: (messages) => broker.publish(messages.map(change)) })
})

/** Changes settlements. */
const settling = (
  name: string,
  kills: string,
  change: (settlement: Settlement.Settlement) => Settlement.Settlement
): Mutant =>
  subscribed(name, kills, ({ settle }) => ({
    settle: (requests) =>
      settle(requests.map(({ delivery, settlement }) => ({ delivery, settlement: change(settlement) })))
  }))

const counting = (name: string, kills: string, change: (counts: Broker.Counts) => Broker.Counts): Mutant => ({
  name,
  kills,
  broker: (broker) => ({
    ...broker,
    admin: { ...broker.admin, counts: (queue) => Effect.map(broker.admin.counts(queue), change) }
  })
})

const retries = "a failed message holds up the later messages of its key until its last retry, and no other key"
const parked = "a parked letter holds up its key, and shows how many messages wait for it"

export const mutants: ReadonlyArray<Mutant> = [
  publishing(
    "forgets keys",
    "messages of a key are handled one at a time in the order of their sends, and keys do not wait for each other",
    (message) => ({ ...message, place: undefined })
  ),
  publishing("gives all messages the same key", retries, ({ place, ...message }) => ({
    ...message,
    place: place && { ...place, key: "same" }
  })),
  publishing(
    "puts a redriven letter behind the messages of its key",
    "a redriven parked letter is handled first, and then the messages that waited for it, in order",
    (message) => ({ ...message, place: message.place && { ...message.place, position: undefined } })
  ),
  subscribed("retries a message behind the others of its key", retries, ({ settle }, { publish }, { queue }) => ({
    settle: (requests) =>
      Effect.gen(function* () {
        for (const { delivery, settlement } of requests) {
          if (settlement._tag !== "Retry") continue
          const { place, ...copy } = Outgoing.retry(delivery, settlement, queue, delivery.metadata.firstPublished)
          const end = { ...copy, place: place && { ...place, position: undefined } }
          yield* Effect.orDie(publish([{ ...end, metadata: { ...copy.metadata, notBefore: 0 } }]))
        }
        return yield* settle(
          requests.map(({ delivery, settlement }) => ({
            delivery,
            settlement: settlement._tag === "Retry" ? { _tag: "Ack" } : settlement
          }))
        )
      })
  })),
  settling("parks no letter", parked, (settlement) =>
    settlement._tag === "DeadLetter" ? { ...settlement, parks: undefined } : settlement
  ),
  settling("parks every letter", "a dead letter makes way for the next message of its key", (settlement) =>
    settlement._tag === "DeadLetter" ? { ...settlement, parks: true } : settlement
  ),
  counting("counts the messages that wait for others as ready", parked, ({ blocked = 0, ready = 0, ...counts }) => ({
    ...counts,
    ready: ready + blocked
  })),
  {
    name: "hides the key from handlers",
    kills:
      "messages of a key are handled one at a time in the order of their sends, and keys do not wait for each other",
    subject: (subject) => ({
      ...subject,
      start: (queue, options, handler) =>
        subject.start(queue, options, (message, context) =>
          handler(
            rewiredMessage(message, () => ({ key: undefined })),
            context
          )
        )
    })
  },
  {
    name: "sends a message without its key to a broker that keeps no order",
    kills: "a broker that does not keep the order of keys refuses a message with a key, with the reason and a remedy",
    subject: (subject) => ({
      ...subject,
      makeProducer: (queue, options) =>
        Effect.map(subject.makeProducer(queue, options), (producer) => ({
          ...producer,
          send: (body, given) => producer.send(body, { ...given, key: undefined })
        }))
    })
  },
  {
    name: "continues after a dead letter on a broker that cannot park it",
    kills: "a broker that cannot hold up the messages of a key refuses to park, before a message is delivered",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) =>
        subject.start(queue, { ...given, retry: RetryPolicy.make({ maxRetries: 0 }) }, handler)
    })
  }
]
