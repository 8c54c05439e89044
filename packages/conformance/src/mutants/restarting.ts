/** Brokers that do not get over the loss of a connection. */
import { type Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { decorate } from "../internal/decorate.ts"
import type { Mutant } from "../Mutant.ts"

const publishing = "a publish ends while the broker restarts, and one that fails says that it may be asked again"

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
  }
]
