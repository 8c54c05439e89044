/**
 * Opens channels. RabbitMQ 3.10 may answer nothing more on a connection on which a queue was deleted in the middle of a burst,
 * and goes on with its heartbeats: the driver would keep such a connection for ever. Here it is dropped, and made again.
 */
import { BrokerError, Delay, Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Channel, DriverConnection } from "../client.ts"
import { type ErrorContext, lostRemedy, toBrokerError } from "../toBrokerError.ts"
import type { Live } from "./connection.ts"
import { request } from "./request.ts"

const dropping = Log.warning("the server answers nothing on a connection, which is dropped and made again")

/** Why other requests on that connection fail. */
const deaf = (millis: number): string =>
  `the server answered nothing on this connection for ${Delay.format(millis)}, and the connection was dropped`

/** The driver's words for what was asked last do not tell why a connection has ended. It was there: that it broke is no refusal. */
const ofEnded = (live: Live, error: BrokerError.BrokerError, context: ErrorContext): BrokerError.BrokerError => {
  const told = toBrokerError(live.failure() ?? error, context)
  const { broker, detail, operation, queue, reason } = told
  if (reason !== "ConnectionFailed") return told
  return new BrokerError.BrokerError({ broker, operation, queue, detail, reason: "ConnectionLost", remedy: lostRemedy })
}

/**
 * Opens a channel. Without an answer in time it fails with `Timeout`, and drops the connection where nothing but heartbeats has
 * come meanwhile. A server that blocks publishers reads nothing, which is no fault; nor is a line that is slow.
 */
export const openChannel = <C>(
  live: Live,
  context: ErrorContext,
  millis: number,
  open: (driver: DriverConnection) => Promise<C>
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

/** Whether all channels of the connection are open, by the driver's words. */
const isFull = ({ detail }: BrokerError.BrokerError): boolean => detail.startsWith("No channels left to allocate")

/** Milliseconds between two attempts to open a channel where all are open. */
const fullPause = 50

/** Opens a channel, and waits for one where all of the connection are open: declarations have theirs for milliseconds. */
export const openFreeChannel = (...request: Parameters<typeof openChannel<Channel>>) =>
  Effect.retry(openChannel(...request), {
    while: isFull,
    schedule: Schedule.spaced(fullPause),
    times: Math.ceil(request[2] / fullPause)
  })
