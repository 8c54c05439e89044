/**
 * A connection to the server that is reopened whenever it is lost, trying each node of the cluster in turn. A delivery
 * tag, a channel and a declaration belong to one live connection and are never used on the next.
 */
import { type Broker, BrokerError, Reconnect } from "@requeue/core/port"
import { Reconnecting } from "@requeue/kit"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Address from "../address.ts"
import * as Client from "../client.ts"
import * as ConsumerChannels from "./consumerChannels.ts"
import * as Credentials from "./credentials.ts"
import { request, unconnected } from "./request.ts"
import { type ErrorContext, toBrokerError } from "../toBrokerError.ts"

/** Whether a connection is up or down, and since when. */
type State = ReturnType<Broker.Service["connection"]>

/** One connection, from opening to end. */
export interface Live {
  readonly driver: ConsumerChannels.Connection
  /** Keeps the connection logged in while it runs. */
  readonly renew: Effect.Effect<void>
  /** Completes when the connection is gone. */
  readonly gone: Deferred.Deferred<void>
  readonly isGone: () => boolean
  /** The driver's error when the connection ended; `undefined` if there was none. */
  readonly failure: () => unknown
  readonly state: () => State
  /** Closed while the server blocks publishers because of an alarm. */
  readonly unblocked: Latch.Latch
  /** The server's reason for blocking publishers; `undefined` while it does not block them. */
  readonly blockedBy: () => string | undefined
}

/** A connection that is reopened after each loss. */
export interface Connection extends Pick<
  Reconnecting.Reconnecting<Live, BrokerError.BrokerError>,
  "current" | "live" | "error"
> {
  /**
   * Waits for the live connection. Fails with `ConnectionFailed` after `requestTimeout`, with the text of the last
   * attempt to connect.
   */
  readonly within: (context: ErrorContext) => Effect.Effect<Live, BrokerError.BrokerError>
  /** Returns the state of the last live connection, and the reason why reconnecting fails. */
  readonly state: () => State
}

/** How long `close` waits for the server's answer before it drops the socket. */
const closeTimeout = Duration.seconds(2)

/** The pauses between attempts to reach the server. */
export const pauses = ({ reconnectFirst, reconnectMax }: Settings): Reconnect.Pauses => ({
  first: reconnectFirst,
  max: reconnectMax
})

const open = (
  { connect }: Client.Driver,
  settings: Settings,
  address: Address.Address,
  role: string
): Effect.Effect<Live, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const account = yield* Credentials.ask(settings, address)
    const gone = Deferred.makeUnsafe<void>()
    const unblocked = yield* Latch.make(true)
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    let down: State | undefined
    let failure: unknown
    let blockedBy: string | undefined
    const node = Address.hostPort(address)
    const driver = yield* Effect.tryPromise({
      try: async (signal) => {
        const opened = await connect(settings, address, account, role, {
          signal,
          closed: (error) => {
            failure = error
            down = { state: "down", since: now() }
            Deferred.doneUnsafe(gone, Exit.void)
            unblocked.openUnsafe()
          },
          blocked: (reason) => {
            blockedBy = reason
            unblocked.closeUnsafe()
          },
          unblocked: () => {
            blockedBy = undefined
            unblocked.openUnsafe()
          }
        })
        // The attempt timed out while the connection was opening.
        if (signal.aborted) opened.destroy()
        return ConsumerChannels.make(opened)
      },
      catch: (cause) =>
        toBrokerError(cause, { operation: "connect", vhost: settings.address.vhost, node }, "ConnectionFailed")
    }).pipe(
      Effect.timeoutOrElse({
        duration: Duration.millis(settings.connectTimeout),
        orElse: () => Effect.fail(toBrokerError(new Error("connect ETIMEDOUT"), { operation: "connect", node }))
      })
    )
    const up: State = { state: "up", since: now() }
    return {
      driver,
      renew: Credentials.renew(account, Credentials.ask(settings, address), (secret) =>
        request({ operation: "connect" }, settings.requestTimeout, () => driver.updateSecret(secret))
      ),
      gone,
      isGone: () => down !== undefined,
      failure: () => failure,
      state: () => down ?? up,
      unblocked,
      blockedBy: () => blockedBy
    }
  })

const close = ({ driver, isGone }: Live): Effect.Effect<void> =>
  Effect.suspend(() =>
    isGone()
      ? Effect.void
      : Effect.tryPromise(driver.close).pipe(
          Effect.timeout(closeTimeout),
          Effect.ignore,
          Effect.ensuring(Effect.sync(() => driver.destroy()))
        )
  )

/**
 * Connects, and stays connected until the scope closes. The first connection is tried once on every node and fails with
 * the last node's error. Later attempts never fail. The connection's name and the log contain `role`.
 */
export const make = (
  settings: Settings,
  role: string
): Effect.Effect<Connection, BrokerError.BrokerError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const opener = yield* Client.Driver
      const nodes = [settings.address, ...settings.hosts.map((text) => Address.node(text, settings.address))]
      let turn = 0
      /** Tries the last node that worked; after a failure, the next one. */
      const connect = Effect.suspend(() =>
        Effect.tapError(open(opener, settings, nodes[turn % nodes.length]!, role), () => Effect.sync(() => turn++))
      )
      // Only connecting can be interrupted. The scope closes an open connection.
      const initial = yield* restore(Effect.retry(connect, { times: nodes.length - 1 }))
      let last = initial
      const { current, error, live } = yield* Reconnecting.make({
        connect,
        isOpen: ({ isGone }) => !isGone(),
        ended: ({ gone, renew }) => Effect.raceFirst(Deferred.await(gone), Effect.andThen(renew, Effect.never)),
        close,
        pauses: pauses(settings),
        annotations: { role },
        onChange: (opened) => (last = opened ?? last),
        initial
      })

      return {
        current,
        live,
        error,
        within: (context) =>
          Effect.timeoutOrElse(live, {
            duration: Duration.millis(settings.requestTimeout),
            orElse: () =>
              Effect.fail(
                new BrokerError.BrokerError({
                  broker: "rabbitmq",
                  ...context,
                  reason: "ConnectionFailed",
                  ...unconnected(settings.requestTimeout, "requestTimeout", error())
                })
              )
          }),
        state: () => {
          const state = last.state()
          const refusal = error()
          return state.state === "up" || refusal === undefined ? state : { ...state, because: refusal.message }
        }
      }
    })
  )
