/** Brokers and consumers whose transactions are none: their parts happen too early, not at all, or twice. */
import type { Broker, BrokerError, Delivery } from "@requeue/core"
import { Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { acks, publishes, subscribed } from "../internal/mutants.ts"
import { rewiredMessage } from "../internal/rewired.ts"
import type { Mutant } from "../Mutant.ts"

/** No message was done before. */
const none: ReadonlyArray<Delivery.Delivery> = []

const ackNow = ({ settle }: Broker.Subscription, deliveries: ReadonlyArray<Delivery.Delivery>) =>
  Effect.as(settle(deliveries.map((delivery) => ({ delivery, settlement: Settlement.Ack }))), none)

/** Succeeds after an error with this reason. */
const despite =
  (reason: BrokerError.Reason, instead: () => Effect.Effect<typeof none>) =>
  (acked: Effect.Effect<typeof none, BrokerError.BrokerError>): Effect.Effect<typeof none, BrokerError.BrokerError> =>
    acked.pipe(Effect.catch((error) => (error.reason === reason ? instead() : Effect.fail(error))))

export const mutants: ReadonlyArray<Mutant> = [
  publishes(
    "publishes at once what is sent in a transaction",
    "a transaction that is rolled back leaves its message in the queue, and no rows and messages",
    ({ publish }) =>
      (_, messages) =>
        publish(messages)
  ),
  publishes(
    "publishes nothing of what is sent in a transaction",
    "a message that is sent in a transaction without an ack exists if that is committed",
    () => () => Effect.void
  ),
  publishes(
    "publishes the first of the messages that are sent in one call",
    "all messages of a batch that is sent in a transaction exist if that is committed",
    ({ publishWithin }) =>
      (transaction, messages) =>
        publishWithin!(transaction, messages.slice(0, 1))
  ),
  acks(
    "acks at once what is acked in a transaction",
    "a message whose transaction was rolled back is redelivered although its handler succeeds",
    (_, subscription) => (_transaction, deliveries) => ackNow(subscription, deliveries)
  ),
  acks(
    "acks nothing of what is acked in a transaction",
    "a transaction that is committed acks its message, and its rows and messages exist from then on",
    () => () => Effect.succeed(none)
  ),
  acks(
    "acks the first message of a batch in a transaction",
    "a batch is acked in one transaction, except for the messages that it retries",
    (sound) => (transaction, deliveries) => sound(transaction, deliveries.slice(0, 1))
  ),
  acks(
    "does not notice that the lease is lost",
    "a lease that is lost before within makes it fail",
    (sound) => (transaction, deliveries) =>
      despite("LeaseLost", () => Effect.succeed(none))(sound(transaction, deliveries))
  ),
  acks(
    "takes any value for a transaction",
    "a value that is no transaction is refused with a remedy, and so is a transaction that has ended",
    (sound, subscription) => (transaction, deliveries) =>
      despite("Unsupported", () => ackNow(subscription, deliveries))(sound(transaction, deliveries))
  ),
  subscribed(
    "settles what a transaction has acked",
    "a message is done once its transaction is committed, although its handler then fails",
    ({ settle }) => ({ settle: (requests) => Effect.as(settle(requests), []) })
  ),
  subscribed(
    "stores the retry of what a transaction has acked",
    "when the answers to commits are lost, the messages of those that were not committed are redelivered",
    ({ settle }, { publish }, { queue }) => ({
      settle: (requests) =>
        Effect.flatMap(settle(requests), (failures) => {
          const lost = new Set(failures.map(({ delivery }) => delivery))
          const copies = requests.flatMap(({ delivery, settlement }) =>
            lost.has(delivery) && settlement._tag === "Retry"
              ? [Outgoing.retry(delivery, settlement, queue, delivery.metadata.firstPublished)]
              : []
          )
          return Effect.as(copies.length === 0 ? Effect.void : Effect.orDie(publish(copies)), failures)
        })
    })
  ),
  subscribed(
    "acks without a transaction on a broker that has none",
    "a broker without transactions refuses within with a remedy, and the message is retried",
    (subscription) => ({ ackWithin: (_, deliveries) => ackNow(subscription, deliveries) })
  ),
  {
    name: "acks what its handler acks in a transaction when that ends",
    kills: "a message whose last attempt was rolled back is a dead letter although its handler succeeds",
    subject: (subject) => ({
      ...subject,
      start: (queue, options, handler) =>
        subject.start(queue, options, (message, context) =>
          handler(
            rewiredMessage(message, () => ({ within: () => Promise.resolve() })),
            context
          )
        )
    })
  },
  {
    name: "hides that within was refused",
    kills: "a handler that acks in a transaction after its end is refused, and the transaction rolls back",
    subject: (subject) => ({
      ...subject,
      start: (queue, options, handler) =>
        subject.start(queue, options, (message, context) =>
          handler(
            rewiredMessage(message, () => ({
              within: async (transaction) => {
                try {
                  await message.within(transaction)
                } catch {}
              }
            })),
            context
          )
        )
    })
  }
]
