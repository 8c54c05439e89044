/** Brokers and consumers that do not take the messages of each `fairBy` in turn, or that exceed the limits of shares. */
import type { Broker } from "@requeue/core"
import type { Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

const publishing = (
  name: string,
  kills: string,
  change: (message: Outgoing.Outgoing) => Partial<Outgoing.Outgoing>
): Mutant => ({
  name,
  kills,
  broker: (broker) => ({
    ...broker,
    publish: (messages) => broker.publish(messages.map((message) => ({ ...message, ...change(message) })))
  })
})

const subscribing = (
  name: string,
  kills: string,
  change: (options: Broker.SubscribeOptions) => Partial<Broker.SubscribeOptions>
): Mutant => ({
  name,
  kills,
  broker: (broker) => ({ ...broker, subscribe: (options) => broker.subscribe({ ...options, ...change(options) }) })
})

const turns = "the messages of each fairBy are taken in turn, and so are those without one"
const inHandlers = "no more messages of a share are in handlers than the limit, over two consumers, and all are handled"
const refused = "a broker without fair shares refuses a message with fairBy, with the reason and a remedy"

export const mutants: ReadonlyArray<Mutant> = [
  publishing("forgets whose a message is", turns, () => ({ fairBy: undefined })),
  publishing("gives all messages the same fairBy", turns, ({ fairBy }) => ({ fairBy: fairBy && "same" })),
  subscribing(
    "hides fairBy from handlers",
    "retries, dead letters and redriven messages keep their fairBy",
    (options) => ({
      onDelivery: (delivery) => options.onDelivery({ ...delivery, fairBy: undefined })
    })
  ),
  subscribing("ignores the limits of shares", inHandlers, () => ({ shareLimits: undefined })),
  subscribing("lets one message more of a share through", inHandlers, ({ shareLimits }) => ({
    shareLimits: shareLimits && { ...shareLimits, concurrency: shareLimits.concurrency && shareLimits.concurrency + 1 }
  })),
  subscribing(
    "shortens the window of a share",
    "no more messages of a share are delivered in any window than the limit allows, over two consumers",
    ({ shareLimits }) => ({
      shareLimits: shareLimits?.rateLimit && {
        ...shareLimits,
        rateLimit: { ...shareLimits.rateLimit, per: shareLimits.rateLimit.per / 2 }
      }
    })
  ),
  {
    name: "sends a message without its fairBy to a broker without shares",
    kills: refused,
    subject: (subject) => ({
      ...subject,
      makeProducer: (queue, options) =>
        Effect.map(subject.makeProducer(queue, options), (producer) => ({
          ...producer,
          send: (body, given) => producer.send(body, { ...given, fairBy: undefined })
        }))
    })
  },
  {
    name: "starts without limits of shares on a broker that cannot count",
    kills: "a broker without fair shares refuses their limits, before a message is delivered",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => subject.start(queue, { ...given, shareLimits: undefined }, handler)
    })
  }
]
