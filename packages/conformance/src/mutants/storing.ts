/** Stores whose inbox forgets, and whose outbox changes messages. */
import { BrokerError } from "@requeue/core"
import type { Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { acks, publishes, subscribed } from "../internal/mutants.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes the messages on their way to the outbox. */
const alters = (name: string, kills: string, change: (message: Outgoing.Outgoing) => Outgoing.Outgoing): Mutant =>
  publishes(
    name,
    kills,
    ({ publishWithin }) =>
      (transaction, messages) =>
        publishWithin!(transaction, messages.map(change))
  )

const asSent = "a message from the outbox has the id, the body, the headers and the time of its send"

export const mutants: ReadonlyArray<Mutant> = [
  acks(
    "does not report that an earlier transaction has done a message",
    "a second copy of a message that a transaction has done is acked, and has no effect",
    (sound) => (transaction, deliveries) => Effect.as(sound(transaction, deliveries), [])
  ),
  acks(
    "does not compare the messages of a batch",
    "two copies of a message in one batch have one effect",
    (sound) => (transaction, deliveries) =>
      Effect.map(sound(transaction, deliveries), (done) => (done.length < deliveries.length ? [] : done))
  ),
  acks(
    "does not report what the same transaction has recorded",
    "two copies of a message in one transaction have one effect",
    (sound) => {
      const begun = new Set<unknown>()
      return (transaction, deliveries) =>
        Effect.map(sound(transaction, deliveries), (done) => (begun.size === begun.add(transaction).size ? [] : done))
    }
  ),
  subscribed(
    "takes a message that was acked for one that a transaction has done",
    "a message that a handler only acks is not recorded: its copy has its effect",
    ({ ackWithin, settle }) => {
      const acked = new Set<string>()
      return {
        settle: (requests) => {
          for (const { delivery, settlement } of requests) {
            if (settlement._tag === "Ack") acked.add(delivery.metadata.id)
          }
          return settle(requests)
        },
        ackWithin: (transaction, deliveries) =>
          Effect.map(ackWithin!(transaction, deliveries), (done) => [
            ...done,
            ...deliveries.filter(({ metadata }) => acked.has(metadata.id))
          ])
      }
    }
  ),
  acks(
    "fails as if the lease were lost when an earlier transaction has done a message",
    "a batch with a message that was done uses up no attempt of the others",
    (sound) => (transaction, deliveries) =>
      Effect.flatMap(sound(transaction, deliveries), (done) =>
        done.length === 0
          ? Effect.succeed(done)
          : Effect.fail(
              new BrokerError.BrokerError({
                broker: "mutant",
                operation: "within",
                reason: "LeaseLost",
                detail: "it was done"
              })
            )
      )
  ),
  alters("forgets the headers of what it sends in a transaction", asSent, (message) => ({ ...message, headers: {} })),
  alters("forgets when what it sends in a transaction was sent", asSent, (message) => ({
    ...message,
    metadata: { ...message.metadata, firstPublished: 1 }
  })),
  alters(
    "forgets the key of what it sends in a transaction",
    "messages with keys leave the outbox in the order of their sends, with their keys",
    (message) => ({ ...message, place: undefined })
  ),
  alters("relays a delayed message at once", "a delayed message from the outbox is never early", (message) => ({
    ...message,
    delay: 0,
    metadata: { ...message.metadata, notBefore: 0 }
  }))
]
