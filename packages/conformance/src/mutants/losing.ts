/** Brokers that do not recover from a lost connection. */
import { type Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

const publishing = "a publish ends while the broker restarts, and one that fails says that it may be repeated"

/** Does something else at the first publish after the connection was lost. */
const restarted = (name: string, instead: ReturnType<Broker.Service["publish"]>): Mutant => ({
  name,
  kills: publishing,
  broker: (broker) => {
    let { since } = broker.connection()
    return decorate(broker, {
      publish: (messages, publish) => {
        const isFirst = broker.connection().since !== since
        since = broker.connection().since
        return isFirst ? instead : publish(messages)
      }
    })
  }
})

const noConnection = (reason: BrokerError.Reason) =>
  Effect.fail(new BrokerError.BrokerError({ broker: "test", operation: "publish", reason, detail: "no connection" }))

export const mutants: ReadonlyArray<Mutant> = [
  restarted("waits for ever when the connection was lost", Effect.never),
  restarted("says that a broker which restarts cannot do this", noConnection("Unsupported")),
  {
    name: "begins no subscription when the connection was lost",
    kills: "a subscription that begins while the connection is lost gets its messages all the same",
    broker: (broker) => {
      const first = broker.connection()
      return {
        ...broker,
        subscribe: (options) =>
          Effect.suspend(() =>
            broker.connection() === first ? broker.subscribe(options) : noConnection("ConnectionLost")
          )
      }
    }
  },
  {
    name: "keeps lost connections to itself",
    kills: "a connection that breaks in the middle of a batch loses nothing",
    broker: (broker) => decorate(broker, { onReconnect: () => {} })
  },
  {
    name: "resumes with its first credit",
    kills: "a subscription without credit has none on its new connection, and that of later there",
    broker: (broker) => ({
      ...broker,
      subscribe: (options) =>
        Effect.gen(function* () {
          let first: number | undefined
          const subscription: Broker.Subscription = yield* broker.subscribe({
            ...options,
            onReconnect: (isGone) => {
              options.onReconnect(isGone)
              subscription.credit(first ?? 0)
            }
          })
          return {
            ...subscription,
            credit: (limit) => {
              first ??= limit
              subscription.credit(limit)
            }
          }
        })
    })
  },
  {
    name: "tells of a new connection after its first deliveries",
    kills: "a new connection is reported before its first delivery",
    broker: (broker, fork) =>
      decorate(broker, {
        onReconnect: ({ onReconnect }) => fork(Effect.delay(Effect.sync(onReconnect), 1))
      })
  },
  ...[
    "the connection is said to be down from its cut until it is made again",
    "where deliveries outlive connections, the connection is said to be down while the broker restarts"
  ].map(
    (kills, index): Mutant => ({
      name: `says at once that its connection is up again, where deliveries ${["end with it", "outlive it"][index]}`,
      kills,
      broker: (broker) => ({ ...broker, connection: () => ({ ...broker.connection(), state: "up" }) })
    })
  ),
  {
    name: "always says that its connection is up, and has been from the start",
    kills: "the connection is said to be up since it was made again, and never since before it was cut",
    broker: (broker) => {
      const first = broker.connection()
      return { ...broker, connection: () => first }
    }
  }
]
