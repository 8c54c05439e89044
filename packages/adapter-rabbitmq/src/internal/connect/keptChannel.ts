/**
 * A channel that is kept for requests, which use it one after the other. Opening a channel per request is risky: when
 * the user has reached its channel limit, which no client can see, the server closes the whole connection.
 * https://www.rabbitmq.com/docs/user-limits
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Channel } from "../client.ts"
import type { ErrorContext } from "../toBrokerError.ts"
import type { Live } from "./connection.ts"
import { openFreeChannel } from "./openChannel.ts"
import { request } from "./request.ts"

/**
 * Milliseconds to wait for the kept channel. A queue that hangs must not block requests for other queues: after this
 * time another channel is opened.
 */
const turnTimeout = 500

/** Opens a channel for one caller; it closes with the scope. `requestTimeout` is in milliseconds. */
export const own = (live: Live, context: ErrorContext, requestTimeout: number) =>
  Effect.acquireRelease(
    openFreeChannel(live, context, requestTimeout, (driver) => driver.channel()),
    (channel) => close(channel, context, requestTimeout)
  )

const close = (channel: Channel, context: ErrorContext, requestTimeout: number) =>
  Effect.ignore(request(context, requestTimeout, () => channel.close()))

/**
 * Lends the channel for requests until the scope closes. If the scope fails, a request may still be waiting for an
 * answer, so the channel is closed. Messages fetched on it stay unsettled after the scope: use {@link own} for
 * fetching.
 */
export type KeptChannel = (
  live: Live,
  context: ErrorContext
) => Effect.Effect<Channel, BrokerError.BrokerError, Scope.Scope>

/** Opens the channel on first use. `requestTimeout` is in milliseconds. */
export const make = (requestTimeout: number): KeptChannel => {
  const turns = Semaphore.makeUnsafe(1)
  let kept: { readonly live: Live; readonly channel: Channel } | undefined

  const keep = (live: Live, context: ErrorContext) =>
    Effect.map(
      openFreeChannel(live, context, requestTimeout, (driver) => driver.channel()),
      (channel) => {
        kept = { live, channel }
        channel.once("close", () => {
          if (kept?.channel === channel) kept = undefined
        })
        return channel
      }
    )

  const turn = Effect.acquireRelease(
    Effect.timeoutOption(turns.take(1), turnTimeout),
    (taken) => (Option.isSome(taken) ? turns.release(1) : Effect.void),
    { interruptible: true }
  )
  return (live, context) =>
    Effect.flatMap(turn, (taken) => {
      if (Option.isNone(taken)) return own(live, context, requestTimeout)
      const known = Effect.suspend(() => (kept?.live === live ? Effect.succeed(kept.channel) : keep(live, context)))
      return Effect.acquireRelease(known, (channel, exit) => {
        if (Exit.isSuccess(exit) || kept?.channel !== channel) return Effect.void
        kept = undefined
        return close(channel, context, requestTimeout)
      })
    })
}
