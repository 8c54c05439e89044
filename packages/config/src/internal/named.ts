/**
 * Makes the errors of a broker name it as the config file does, because two brokers of the file may be of the same kind.
 */
import { type Broker, BrokerError } from "@requeue/core"
import { Direct } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** Returns the error with the broker's name in the file. */
export const error = (name: string, given: BrokerError.BrokerError): BrokerError.BrokerError => {
  const { cause, detail, entries, isMisconfigured, operation, queue, reason, remedy } = given
  const own = entries?.map((entry) =>
    entry.error === undefined ? entry : { ...entry, error: error(name, entry.error) }
  )
  const named = { broker: name, cause, detail, entries: own, isMisconfigured, operation, queue, reason, remedy }
  return new BrokerError.BrokerError(named)
}

/** Returns the broker with errors that have its name in the file. */
export const service = (name: string, broker: Broker.Service): Broker.Service => {
  const own = (given: BrokerError.BrokerError) => error(name, given)
  const map = <A, R>(effect: Effect.Effect<A, BrokerError.BrokerError, R>) => Effect.mapError(effect, own)
  const { admin, publish, reach, subscribe } = broker
  const { backlog, delayedAtMost, isSame, names } = admin
  return {
    ...broker,
    ...(reach && { reach: map(reach) }),
    publish: (messages) => direct(publish(messages), own),
    subscribe: (options) => map(subscribe(options)),
    admin: {
      ...admin,
      counts: (queue) => map(admin.counts(queue)),
      browse: (options) =>
        Effect.map(map(admin.browse(options)), (browser) => ({
          ...browser,
          next: (count) => map(browser.next(count))
        })),
      purge: (queue) => map(admin.purge(queue)),
      ...(names && { names: map(names) }),
      ...(isSame && { isSame: (one: string, other: string) => map(isSame(one, other)) }),
      ...(backlog && { backlog: (request) => map(backlog(request)) }),
      ...(delayedAtMost && { delayedAtMost: (queue) => map(delayedAtMost(queue)) })
    }
  }
}

/** Keeps a direct effect direct, because that saves a fiber for each message. */
const direct = (
  effect: Effect.Effect<void, BrokerError.BrokerError>,
  own: (error: BrokerError.BrokerError) => BrokerError.BrokerError
): Effect.Effect<void, BrokerError.BrokerError> => {
  if (!(effect instanceof Direct.Direct)) return Effect.mapError(effect, own)
  const { begin }: Direct.Direct<void, BrokerError.BrokerError> = effect
  return Direct.make<void, BrokerError.BrokerError>((onExit) => {
    const giveUp = begin((exit) => onExit(Exit.isSuccess(exit) ? exit : Exit.mapError(exit, own)))
    return () => {
      const known = giveUp()
      return known && own(known)
    }
  })
}
