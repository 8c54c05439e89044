/** Fails calls on a missing queue, and reports the parts of a broker that do not answer. */
import { type Broker, BrokerError } from "@requeue/core"
import { Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"

const missing = (
  { capabilities: { broker } }: Broker.Service,
  queue: string,
  operation: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker,
    operation,
    queue,
    reason: "QueueMissing",
    detail: "there is no such queue",
    remedy: "Use the dead-letter queue's name on the broker, such as orders.dlq"
  })

/**
 * Makes a call on a broker, and logs once which of its parts do not answer. An adapter's browse or purge does not report
 * them, so each call counts as well.
 */
export const tell = <A, E, R>(
  broker: Broker.Service,
  queue: string,
  operation: string,
  call: (broker: Broker.Service) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const { admin } = broker
    let isTold = false
    const log = ({ missing = [] }: Broker.Counts): Effect.Effect<void> => {
      if (isTold || missing.length === 0) return Effect.void
      isTold = true
      return Log.warning("parts of the broker do not answer: their dead letters are left out", {
        queue,
        operation,
        missing: missing.map(({ message }) => message).join("; ")
      })
    }
    let isFirst = true
    /** Each call counts its queue first, and fails if the queue is missing. */
    const counts = (name: string): Effect.Effect<Broker.Counts, BrokerError.BrokerError> =>
      Effect.flatMap(Effect.tap(admin.counts(name), log), (counted) => {
        const isMissing = isFirst && name === queue && counted.isMissing === true
        if (name === queue) isFirst = false
        return isMissing ? Effect.fail(missing(broker, queue, operation)) : Effect.succeed(counted)
      })
    const beside = <B, F, S>(own: Effect.Effect<B, F, S>, name: string): Effect.Effect<B, F, S> =>
      Effect.map(Effect.all([own, Effect.ignore(counts(name))], { concurrency: "unbounded" }), ([answer]) => answer)
    return call({
      ...broker,
      admin: {
        ...admin,
        counts,
        browse: (options) => beside(admin.browse(options), options.queue),
        purge: (name) => beside(admin.purge(name), name)
      }
    })
  })
