/** Brokers that store or deliver wrongly. */
import type { Delivery } from "@requeue/core"
import type { Metadata, Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes what is published. */
const stores = (name: string, kills: string, change: (message: Outgoing.Outgoing) => Outgoing.Outgoing): Mutant => ({
  name,
  kills,
  broker: (broker) => decorate(broker, { publish: (messages, publish) => publish(messages.map(change)) })
})

/** Changes what is delivered. */
const delivers = (name: string, kills: string, change: (delivery: Delivery.Delivery) => Delivery.Delivery): Mutant => ({
  name,
  kills,
  broker: (broker) => decorate(broker, { onDelivery: (delivery, options) => options.onDelivery(change(delivery)) })
})

/** Changes the metadata of a delivery. */
const withMetadata =
  (change: (metadata: Metadata.Metadata) => Partial<Metadata.Metadata>) => (delivery: Delivery.Delivery) => ({
    ...delivery,
    metadata: { ...delivery.metadata, ...change(delivery.metadata) }
  })

const throughText = (body: Uint8Array) => new TextEncoder().encode(new TextDecoder().decode(body))

/** Delivers each message to every subscription of its queue, as a fanout does. */
const fanout: Mutant = {
  name: "delivers each message to every subscription",
  kills:
    "where the broker lives in one process, each message goes to one subscription; when that ends, it goes to another",
  broker: (broker) => {
    const all = new Map<string, Set<(delivery: Delivery.Delivery) => void>>()
    return {
      ...broker,
      subscribe: (options) => {
        const mine = all.get(options.queue) ?? new Set()
        all.set(options.queue, mine.add(options.onDelivery))
        return broker.subscribe({ ...options, onDelivery: (delivery) => mine.forEach((each) => each(delivery)) })
      }
    }
  }
}

export const mutants: ReadonlyArray<Mutant> = [
  fanout,
  stores("takes bodies for text", "a body of any bytes survives byte for byte", (message) => ({
    ...message,
    body: throughText(message.body)
  })),
  stores("cuts large bodies", "a body of 256 KB survives", (message) => ({
    ...message,
    body: message.body.subarray(0, 65_536)
  })),
  stores("drops headers", "headers survive, with any text and with names that differ in case", (message) => ({
    ...message,
    headers: {}
  })),
  stores(
    "folds the names of headers",
    "headers survive, with any text and with names that differ in case",
    (message) => ({
      ...message,
      headers: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name.toLowerCase(), value]))
    })
  ),
  stores(
    "drops the headers of what is redriven",
    "trace context survives retries, the dead letter and a redrive",
    (m) => (m.metadata.redrives > 0 ? { ...m, headers: {} } : m)
  ),
  stores(
    "hands out headers that a handler can write into",
    "a handler that writes into its message changes neither the next attempt nor the dead letter",
    (message) => ({ ...message, headers: { ...message.headers } })
  ),
  stores(
    "takes what is asked of another broker for its own",
    "what is asked of another broker is passed over, at each attempt and in the dead letter",
    (message) => {
      const names = Object.keys(message.native ?? {})
      return names.length === 0 ? message : { ...message, queue: `${message.queue}.${names.join(".")}` }
    }
  ),
  delivers(
    "tells facts of another broker",
    "a message has facts of its own broker alone, frozen, and the same at each read",
    (delivery) => ({ ...delivery, native: Object.freeze({ elsewhere: undefined }) })
  ),
  delivers(
    "tells facts that a handler can write into",
    "a message has facts of its own broker alone, frozen, and the same at each read",
    (delivery) => ({ ...delivery, native: {} })
  ),
  stores("ignores the delay of a send", "a delayed send comes at its time", (message) => ({
    ...message,
    delay: 0,
    // With it, the consumer would return the message until it is due.
    metadata: { ...message.metadata, notBefore: 0 }
  })),
  stores(
    "sends too late",
    "shorter delays overtake longer ones, and a delayed message holds up nothing",
    (message) => ({
      ...message,
      delay: message.delay + 1000
    })
  ),
  stores("gives messages ids of its own", "a batch is sent in order, and its ids are answered in order", (message) => ({
    ...message,
    metadata: { ...message.metadata, id: `${message.metadata.id}-native` }
  })),
  delivers("delivers without headers", "a foreign producer's headers are kept", (delivery) => ({
    ...delivery,
    headers: {}
  })),
  delivers(
    "assigns headers to an object that has a prototype",
    "headers survive, with any text and with names that differ in case",
    // Assigned, unlike spread.
    (delivery) => ({ ...delivery, headers: Object.assign(Object.create(Object.prototype), delivery.headers) })
  ),
  delivers(
    "believes metadata whatever it says",
    "metadata that a foreign sender made up is bounded: attempts are whole, delays end, and retries as well",
    (delivery) => {
      const { a = 0 }: { readonly a?: number } = JSON.parse(delivery.headers["requeue"] ?? "{}")
      return { ...delivery, attempts: delivery.attempts + a }
    }
  ),
  delivers("counts one attempt too many", "maxRetries 3: attempts 1 to 4, then the dead letters", (delivery) => ({
    ...delivery,
    attempts: delivery.attempts + 1
  })),
  delivers("counts one attempt too few", "maxRetries 1: two deliveries, then the dead letters", (delivery) => ({
    ...delivery,
    attempts: Math.max(1, delivery.attempts - 1)
  })),
  delivers(
    "counts no attempts of earlier copies",
    "a message beyond its attempts is run once more, and beyond maxDeliveries it is dead-lettered without a run",
    (delivery) => ({
      ...delivery,
      attempts: delivery.attempts - delivery.metadata.attempts
    })
  ),
  delivers(
    "loses notBefore",
    "a message that comes before its time waits, uncounted, and no handler runs",
    withMetadata(() => ({ notBefore: 0 }))
  ),
  delivers(
    "takes the time of delivery for the first publish",
    "headers, body, id and time of first publish are the same after retries",
    (delivery) =>
      withMetadata(({ firstPublished }) => ({ firstPublished: firstPublished + delivery.attempts }))(delivery)
  ),
  {
    name: "delivers twice",
    kills: "two consumers of a queue share its messages",
    // After a while: a message that arrives while its ack is in flight is recognised, and acked without a run.
    broker: (broker, fork) =>
      decorate(broker, {
        onDelivery: (delivery, options) => {
          options.onDelivery(delivery)
          const again = { ...delivery, receipt: `${String(delivery.receipt)}-again` }
          fork(
            Effect.andThen(
              Effect.sleep(50),
              Effect.sync(() => options.onDelivery(again))
            )
          )
        }
      })
  },
  {
    name: "reorders",
    kills: "messages come in the order in which they were sent",
    broker: (broker) => decorate(broker, { publish: (messages, publish) => publish(messages.toReversed()) })
  },
  {
    name: "confirms before it stores",
    kills: "a send ends when the message is stored, not before",
    broker: (broker, fork) =>
      decorate(broker, {
        publish: (messages, publish) => Effect.sync(() => fork(Effect.delay(publish(messages), 50)))
      })
  },
  {
    name: "loses messages that nobody waits for",
    kills: "messages wait for a consumer",
    broker: (broker) => {
      let consumers = 0
      const decorated = decorate(broker, {
        publish: (messages, publish) => (consumers === 0 ? Effect.void : publish(messages))
      })
      return {
        ...decorated,
        subscribe: (options) => Effect.tap(decorated.subscribe(options), () => Effect.sync(() => consumers++))
      }
    }
  },
  {
    name: "publishes to the queue of the first message",
    kills: "a publish of messages for several queues ends when each is stored in its own",
    broker: (broker) =>
      decorate(broker, {
        publish: (messages, publish) => publish(messages.map((message) => ({ ...message, queue: messages[0]!.queue })))
      })
  }
]
