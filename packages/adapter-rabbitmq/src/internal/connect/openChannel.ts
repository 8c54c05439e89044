/**
 * Opens channels. After a queue is deleted in the middle of a burst, RabbitMQ 3.10 may stop answering on the connection
 * but keep sending heartbeats, so the driver would keep the connection forever. The adapter drops and reopens it.
 */
import { BrokerError, Delay, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Channel } from "../client.ts"
import { type ErrorContext, lostRemedy, toBrokerError } from "../toBrokerError.ts"
import type { Live } from "./connection.ts"
import { request } from "./request.ts"

const dropping = Log.warning("the server stopped answering on a connection; the connection is dropped and reopened")

/** The error text of other requests on that connection. */
const deaf = (millis: number): string =>
  `the server answered nothing on this connection for ${Delay.format(millis)}, and the connection was dropped`

/**
 * Makes the error of a request on a connection that has ended. The driver's error for the last request does not contain
 * the cause. The connection existed, so the reason is `ConnectionLost`, not `ConnectionFailed`.
 */
const ofEnded = (live: Live, error: BrokerError.BrokerError, context: ErrorContext): BrokerError.BrokerError => {
  const told = toBrokerError(live.failure() ?? error, context)
  const { broker, detail, operation, queue, reason } = told
  if (reason !== "ConnectionFailed") return told
  return new BrokerError.BrokerError({ broker, operation, queue, detail, reason: "ConnectionLost", remedy: lostRemedy })
}

/**
 * Opens a channel. Without an answer in time it fails with `Timeout`; if only heartbeats arrived in that time, it also
 * drops the connection. It keeps a connection on which the server blocks publishers, because the server then reads
 * nothing, and a connection that is only slow.
 */
export const openChannel = <C>(
  live: Live,
  context: ErrorContext,
  millis: number,
  open: (driver: Live["driver"]) => Promise<C>
): Effect.Effect<C, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const { driver } = live
    const heard = driver.heard()
    const isDead = (): boolean => driver.heard() === heard && live.blockedBy() === undefined
    const failing = (error: BrokerError.BrokerError): Effect.Effect<never, BrokerError.BrokerError> => {
      if (live.isGone()) return Effect.fail(ofEnded(live, error, context))
      if (error.reason !== "Timeout" || !isDead()) return Effect.fail(error)
      return Effect.andThen(
        Effect.andThen(
          dropping,
          Effect.sync(() => driver.destroy(deaf(millis)))
        ),
        Effect.fail(error)
      )
    }
    return request(context, millis, () => open(driver)).pipe(Effect.catch(failing))
  })

/** Whether all channels of the connection are open, by the driver's error text. */
const isFull = ({ detail }: BrokerError.BrokerError): boolean => detail.startsWith("No channels left to allocate")

/** Milliseconds between attempts to open a channel while all are open. */
const fullPause = 50

/**
 * Opens a channel, and waits for one while all of the connection are open: declarations hold theirs for milliseconds.
 */
export const openFreeChannel = (...request: Parameters<typeof openChannel<Channel>>) =>
  Effect.retry(openChannel(...request), {
    while: isFull,
    schedule: Schedule.spaced(fullPause),
    times: Math.ceil(request[2] / fullPause)
  })
