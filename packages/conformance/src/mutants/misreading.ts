/** Consumers that misread a failed settlement. */
import { type Broker } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { sees } from "../internal/sees.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes the failed settlements that the consumer receives. */
const hears = (name: string, kills: string, change: (failure: Broker.SettleFailure) => Broker.SettleFailure): Mutant =>
  sees(name, kills, (broker) => ({
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => ({
        ...subscription,
        settle: (requests) => Effect.map(subscription.settle(requests), (failures) => failures.map(change))
      }))
  }))

/** Replaces one fate by another. */
const takes = (name: string, kills: string, fate: Broker.Fate, other: Broker.Fate): Mutant =>
  hears(name, kills, (failure) => (failure.fate === fate ? { ...failure, fate: other } : failure))

/** Settles refused messages in another way. */
const refusedIs = (
  name: string,
  kills: string,
  other: (settlement: Settlement.Settlement) => Settlement.Settlement | undefined
): Mutant =>
  sees(name, kills, (broker) => ({
    ...broker,
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => ({
        ...subscription,
        settle: (requests) =>
          Effect.flatMap(subscription.settle(requests), (failures) => {
            const settlements = new Map(requests.map(({ delivery, settlement }) => [delivery, settlement]))
            const again = failures.flatMap(({ delivery, fate }) => {
              const settlement = fate === "rejected" ? other(settlements.get(delivery)!) : undefined
              return settlement === undefined ? [] : [{ delivery, settlement }]
            })
            const changed = new Set(again.map(({ delivery }) => delivery))
            const left = failures.filter(({ delivery }) => !changed.has(delivery))
            return again.length === 0
              ? Effect.succeed(left)
              : Effect.map(subscription.settle(again), (failed) => [...left, ...failed])
          })
      }))
  }))

/** Changes the credit, which may depend on whether a settlement has failed and on the credit before. */
const credits = (
  name: string,
  kills: string,
  change: (limit: number, hasFailed: boolean, before: number | undefined) => number
): Mutant =>
  sees(name, kills, (broker) => {
    let hasFailed = false
    let before: number | undefined
    return {
      ...broker,
      subscribe: (options) =>
        Effect.map(broker.subscribe(options), (subscription) => ({
          ...subscription,
          credit: (limit) => {
            const changed = change(limit, hasFailed, before)
            before = limit
            subscription.credit(changed)
          },
          settle: (requests) =>
            Effect.tap(subscription.settle(requests), (failures) =>
              Effect.sync(() => {
                hasFailed ||= failures.length > 0
              })
            )
        }))
    }
  })

const poisonStarves = "a message whose retry and dead letter are refused holds up no other, and no handler runs for it"

export const mutants: ReadonlyArray<Mutant> = [
  takes("takes the refusal of one message for the broker's trouble", poisonStarves, "rejected", "transient"),
  takes(
    "forgets what the broker refuses",
    "a message whose dead letter is refused is reported once, counted, and ends when the broker accepts it",
    "rejected",
    "lost"
  ),
  refusedIs("runs again what it cannot settle", poisonStarves, () => Settlement.Release(1000)),
  refusedIs(
    "runs again what it cannot ack",
    "a message whose ack is refused is not run again, and is acked when the broker takes it",
    () => Settlement.Retry(0)
  ),
  refusedIs(
    "gives back at once what it cannot delay",
    "a delayed retry whose copy is refused comes after its delay all the same, as the next attempt",
    ({ _tag }) => (_tag === "Retry" ? Settlement.Retry(0) : undefined)
  ),
  hears(
    "makes no smaller copies",
    "a dead letter that is accepted only without all records that, and keeps its body and headers",
    (failure) => ({
      ...failure,
      smaller: false
    })
  ),
  hears(
    "makes smaller copies whatever the broker says",
    "a letter that no smaller copy would let through is not made smaller",
    (failure) => ({ ...failure, smaller: true })
  ),
  takes(
    "takes no answer for a lost delivery",
    "an ack with an unknown outcome is requested again without a second run, and nothing begins before",
    "unknown",
    "lost"
  ),
  takes(
    "does not slow down for a broker in trouble",
    "an ack of which nothing happened is asked again without a second run, and nothing begins before",
    "transient",
    "rejected"
  ),
  credits(
    "counts handlers that run against the probe of the broker",
    "settlements are probed by one of them, which waits for no handler that is slow",
    (limit, hasFailed) => (hasFailed ? Math.min(1, limit) : limit)
  ),
  credits(
    "counts handlers that run against the probe of the backoff",
    "the probe of a consumer backoff comes at its time, even while slow handlers run",
    (limit, _, before) => (before === 0 ? Math.min(1, limit) : limit)
  )
]
