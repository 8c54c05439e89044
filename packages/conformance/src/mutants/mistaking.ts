/** Consumers and brokers that take one message for another. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import { sees } from "../internal/sees.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes how the consumer identifies a redelivered message. */
const identifies = (name: string, kills: string, identify: Broker.Subscription["identify"] & {}): Mutant =>
  sees(name, kills, (broker) => ({
    ...broker,
    subscribe: (options) => Effect.map(broker.subscribe(options), (subscription) => ({ ...subscription, identify }))
  }))

export const mutants: ReadonlyArray<Mutant> = [
  identifies(
    "cannot tell that a message comes again",
    "connections that break again and again cost no attempt of messages that wait for their batch",
    () => undefined
  ),
  identifies(
    "takes a message for another one when its lease has ended",
    "leases that end again and again cost no attempt of messages that wait for their batch",
    ({ attempts, metadata }) => `${metadata.id} ${attempts}`
  ),
  identifies(
    "runs again what was lost in a run that went well",
    "with one attempt, a connection that breaks in a run that succeeds leaves one run and no dead letter",
    () => undefined
  ),
  identifies(
    "runs again what was lost in a run that failed",
    "with one attempt, a connection that breaks in a run that fails leaves one run and one dead letter",
    () => undefined
  ),
  identifies(
    "runs again what lost its lease in a run that went well",
    "with one attempt, a lease that ends in a run that succeeds leaves one run and no dead letter",
    () => undefined
  ),
  identifies(
    "runs again what lost its lease in a run that failed",
    "with one attempt, a lease that ends in a run that fails leaves one run and one dead letter",
    () => undefined
  ),
  identifies(
    "forgets what it has given up when the connection breaks",
    "after its last run, a message whose connection breaks in quarantine is not run again",
    () => undefined
  ),
  identifies(
    "forgets what it has given up when the lease ends",
    "after its last run, a message whose lease ends in quarantine is not run again",
    () => undefined
  ),
  identifies(
    "forgets what it has given up when the lease is lost",
    "after its last run, a message whose lease is said to be lost in quarantine is not run again",
    () => undefined
  ),
  identifies(
    "knows messages by their ids",
    "messages of one id are each handled once, also when an ack of one of them is lost with the connection",
    ({ metadata }) => metadata.id
  ),
  {
    name: "takes messages of one id for one message",
    kills: "messages with the same id are separate messages: each is handled, and once",
    broker: (broker) => {
      const seen = new Set<string>()
      return decorate(broker, {
        onDelivery: (delivery, options) => {
          const isNew = !seen.has(delivery.metadata.id) || delivery.attempts > 1
          seen.add(delivery.metadata.id)
          if (isNew) options.onDelivery(delivery)
        }
      })
    }
  }
]
