/** Subscriptions whose messages are acked in transactions of another database, by its inbox. */
import * as Effect from "effect/Effect"
import type { SettleFailure, SettleRequest, Subscription } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import { isOfContent } from "../../message/Metadata.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Inbox } from "../../port/Inbox.ts"

/** Returns the part of an inbox that a namespace has. Default: what is in none. */
export const inNamespace = (inbox: Inbox, namespace: string | undefined): Inbox => {
  if (namespace === undefined) return inbox
  const own = (queue: string) => `${namespace}:${queue}`
  return {
    record: (transaction, queue, ids) => inbox.record(transaction, own(queue), ids),
    recorded: (queue, ids) => inbox.recorded(own(queue), ids),
    prune: inbox.prune
  }
}

/** Why an inbox cannot record a message by its id; `undefined` if it can. */
const problemOf = ({ metadata }: Delivery): string | undefined => {
  if (isOfContent(metadata)) {
    return "the message has no id, so its inbox cannot distinguish it from another one with the same content"
  }
  // PostgreSQL cannot store them.
  const isText = metadata.id.isWellFormed() && !metadata.id.includes("\0")
  return isText ? undefined : "the message's id has a NUL or a broken surrogate, so its inbox cannot record it"
}

const unrecordable = (broker: string, queue: string, detail: string): BrokerError =>
  new BrokerError({
    broker,
    operation: "within",
    queue,
    reason: "Unsupported",
    detail,
    remedy: "Let the producer set a message id"
  })

const committed = (broker: string, queue: string): BrokerError =>
  new BrokerError({
    broker,
    operation: "settle",
    queue,
    reason: "LeaseLost",
    detail: "a transaction has done the message"
  })

/** The pause of a second copy that a transaction met with the first, in milliseconds: they must not share the next batch. */
const twinPause = 1000

/** The facts of a subscription, its broker and its store. */
export interface Dependencies {
  /** The broker's name. */
  readonly broker: string
  readonly queue: string
  readonly inbox: Inbox
  /** Called with each use of the inbox. */
  readonly onUse: () => void
}

/** Returns the deliveries that repeat the id of an earlier one. */
const twinsOf = (deliveries: ReadonlyArray<Delivery>): ReadonlyArray<Delivery> => {
  const ids = new Set<string>()
  return deliveries.filter(({ metadata: { id } }) => ids.size === ids.add(id).size)
}

/** Adds `ackWithin` to a subscription. Its other settlements are acks where a transaction has done the message. */
export const over = (
  subscription: Subscription,
  { broker, inbox, onUse, queue }: Dependencies
): Pick<Subscription, "ackWithin" | "settle"> => {
  let isUsed = false
  /** If the inbox does not have such a message at its settlement, the transaction that recorded it was rolled back. */
  const twins = new WeakSet<Delivery>()

  const settle = (requests: ReadonlyArray<SettleRequest>, done: ReadonlySet<string>) => {
    const isDone = ({ delivery, settlement }: SettleRequest) =>
      settlement._tag !== "Ack" && done.has(delivery.metadata.id)
    const acked = new Set(requests.filter(isDone).map(({ delivery }) => delivery))
    const changed = requests.map(({ delivery, settlement }) => {
      if (acked.has(delivery)) return { delivery, settlement: Settlement.Ack }
      const waits = settlement._tag === "Release" && twins.has(delivery)
      return { delivery, settlement: waits ? Settlement.Release(twinPause) : settlement }
    })
    return Effect.map(subscription.settle(changed), (failures): ReadonlyArray<SettleFailure> => {
      // If the ack is lost, the message is delivered again, and is done then too.
      const others = failures.filter(({ delivery, fate }) => fate !== "lost" || !acked.has(delivery))
      for (const { delivery } of others) acked.delete(delivery)
      const error = acked.size === 0 ? undefined : committed(broker, queue)
      return [...others, ...[...acked].map((delivery) => ({ delivery, error: error!, fate: "committed" as const }))]
    })
  }

  return {
    ackWithin: (transaction, deliveries) =>
      Effect.suspend(() => {
        const [problem] = deliveries.flatMap((delivery) => problemOf(delivery) ?? [])
        if (problem !== undefined) return Effect.fail(unrecordable(broker, queue, problem))
        isUsed = true
        onUse()
        const again = twinsOf(deliveries)
        const ids = deliveries.map(({ metadata }) => metadata.id)
        return Effect.map(inbox.record(transaction, queue, ids), (recorded) => {
          const before = new Set(recorded)
          const done = new Set([...deliveries.filter(({ metadata }) => before.has(metadata.id)), ...again])
          for (const delivery of done) twins.add(delivery)
          return [...done]
        })
      }),
    settle: (requests) => {
      const isAsked = (request: SettleRequest) =>
        request.settlement._tag !== "Ack" && problemOf(request.delivery) === undefined
      const asked = isUsed ? requests.filter(isAsked) : []
      if (asked.length === 0) return subscription.settle(requests)
      const ids = asked.map(({ delivery }) => delivery.metadata.id)
      return Effect.matchEffect(inbox.recorded(queue, ids), {
        onSuccess: (done) => settle(requests, new Set(done)),
        onFailure: (error) => {
          const kept = asked.map(({ delivery }) => ({ delivery, error, fate: "transient" as const }))
          const others = requests.filter((request) => !isAsked(request))
          return others.length === 0
            ? Effect.succeed(kept)
            : Effect.map(subscription.settle(others), (failures) => [...failures, ...kept])
        }
      })
    }
  }
}
