/** The connections of a broker: one for each lane, opened when it is first needed, and reopened whenever it is lost. */
import { BrokerError, type Connection, type Timers } from "@requeue/core/port"
import { Reconnecting } from "@requeue/kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../PostgresOptions.ts"
import type { Driver, Session } from "../client.ts"
import { toBrokerError } from "../toBrokerError.ts"
import * as Lane from "./lane.ts"

interface Dependencies {
  readonly settings: Settings
  readonly driver: Driver
  readonly timers: Timers.Timers
  readonly onState: Connection.Tracker["set"]
}

interface Options {
  readonly name: string
  /** A connection that is open already. Default: none. */
  readonly initial?: Session | undefined
  /** Called with each new connection of this lane. Default: nothing. */
  readonly onGain?: ((session: Session) => void) | undefined
  readonly onNotification?: ((payload: string, process: number) => void) | undefined
}

export type Connections = (options: Options) => Effect.Effect<Lane.Lane, never, Scope.Scope>

const unanswered = new BrokerError.BrokerError({
  broker: "postgres",
  operation: "connect",
  reason: "ConnectionFailed",
  detail: "the server has not answered"
})

/** The pauses between attempts to connect, in milliseconds. */
const pauses = { first: 100, max: 2000 }

/** Opens a connection. */
export const connect = (
  { address, timeout }: Settings,
  driver: Driver,
  onNotification: (payload: string, process: number) => void = () => undefined
): Effect.Effect<Session, BrokerError.BrokerError> =>
  Effect.callback((resume) => {
    let isWanted = true
    driver.connect(address, timeout, onNotification).then(
      (session) => (isWanted ? resume(Effect.succeed(session)) : session.close()),
      (cause) => resume(Effect.fail(toBrokerError(cause, { operation: "connect", isConnecting: true })))
    )
    return Effect.sync(() => {
      isWanted = false
    })
  })

const ignored = (promise: () => Promise<unknown>): Effect.Effect<void> => Effect.ignore(Effect.tryPromise(promise))

/** Returns a function that makes lanes. The broker is down while a lane has lost its connection. */
export const make = ({ driver, onState, settings, timers }: Dependencies): Connections => {
  const lost = new Set<string>()
  const changed = (name: string, isLost: boolean, error?: BrokerError.BrokerError): void => {
    if (isLost) lost.add(name)
    else lost.delete(name)
    onState(lost.size === 0 ? "up" : "down", lost.size === 0 ? undefined : error?.message)
  }

  return ({ initial, name, onGain, onNotification }) =>
    Effect.gen(function* () {
      const needed = Deferred.makeUnsafe<void>()
      if (initial !== undefined) Deferred.doneUnsafe(needed, Effect.void)
      const open = connect(settings, driver, onNotification)
      let error = unanswered
      let session: Session | undefined
      const lane = Lane.make({
        session: () => (session?.isOpen() === true ? session : undefined),
        reason: () => error,
        onNeed: () => void Deferred.doneUnsafe(needed, Effect.void),
        timers,
        soon: driver.soon
      })
      yield* Reconnecting.make<Session, BrokerError.BrokerError>({
        connect: Effect.andThen(
          Deferred.await(needed),
          Effect.tapError(open, (cause) =>
            Effect.sync(() => {
              error = cause
              changed(name, true, cause)
            })
          )
        ),
        isOpen: ({ isOpen }) => isOpen(),
        ended: ({ ended }) => Effect.promise(() => ended),
        close: ({ close }) => ignored(close),
        pauses,
        annotations: { role: name },
        initial,
        onChange: (next) => {
          session = next
          changed(name, next === undefined)
          if (next === undefined) return
          onGain?.(next)
          lane.resume()
        }
      })
      yield* Effect.addFinalizer(() => Effect.sync(lane.close))
      return lane
    })
}
