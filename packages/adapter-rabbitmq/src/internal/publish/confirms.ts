/**
 * A channel on which the server confirms publications and returns those that it cannot route.
 * https://www.rabbitmq.com/docs/confirms#publisher-confirms
 */
import { Bag, Broker, BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Client from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import { openChannel } from "../connect/openChannel.ts"
import { ofEncoding, toBrokerError } from "../toBrokerError.ts"
import * as Wire from "../wire.ts"
import { attributeClose } from "./attributeClose.ts"
import * as Writer from "./writer.ts"

/**
 * Called once for each publication: with its error, or with `undefined` when the server has confirmed it. A bystander was lost
 * because the server closed the channel for another publication, so it may be sent again.
 */
export type OnOutcome = (error: BrokerError.BrokerError | undefined, isBystander?: boolean) => void

/** A channel in confirm mode. */
export interface Confirms {
  readonly live: Live
  readonly isOpen: () => boolean
  /** Writes a publication. */
  readonly write: (publication: Client.Publication, onOutcome: OnOutcome) => Written
  /** Cancels a publication. The channel accepts no further ones and closes after the earlier ones have their outcomes. */
  readonly giveUp: (one: Written) => void
}

/** A written publication. A class, because there is an object for every message. */
export class Written implements Bag.Member {
  place = -1
  /** Whether the server has returned this publication, or one that looks the same. */
  isReturned = false
  /** Whether the server has closed the channel because of this publication, or because of another. */
  part: "culprit" | "bystander" | undefined = undefined
  readonly publication: Client.Publication
  readonly channel: Confirms

  constructor(publication: Client.Publication, channel: Confirms) {
    this.publication = publication
    this.channel = channel
  }
}

/**
 * Whether a returned message may be this publication. A return has no delivery tag, so the name that the adapter gave the copy
 * decides. A publication with only its producer's headers has no such name, and any return of its route may be its return.
 */
const mayBe = (
  { exchange, headers, routingKey }: Client.Publication,
  { fields, properties }: Pick<Client.Incoming, "fields" | "properties">
): boolean => {
  if (exchange !== fields.exchange || routingKey !== fields.routingKey) return false
  const name = headers[Wire.copyHeader]
  return name === undefined || name === properties.headers?.[Wire.copyHeader]
}

const unroutable = ({ exchange, queue, routingKey, unrouted }: Client.Publication): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unroutable",
    detail: `nothing is bound to exchange ${exchange === "" ? "(default)" : exchange} for ${routingKey}`,
    remedy: unrouted ?? `Declare the queue, or let the adapter do it with assert: "declare"`
  })

const openDriver = (live: Live, timeout: number): Effect.Effect<Client.ConfirmChannel, BrokerError.BrokerError> =>
  openChannel(live, { operation: "publish" }, timeout, (driver) => driver.confirmChannel())

const open = (live: Live, timeout: number): Effect.Effect<Confirms, BrokerError.BrokerError> =>
  Effect.map(openDriver(live, timeout), (channel) => {
    const unconfirmed = Bag.make<Written>()
    const writer = Writer.make(channel)
    let isOpen = true
    /** The server's reason for closing the channel. */
    let words: unknown
    channel.on("error", (error) => (words = error))
    // Runs before the driver's listener, which fails unconfirmed publications. Nothing may be written here after that.
    channel.prependListener("close", () => {
      isOpen = false
      if (words === undefined) return
      const error = toBrokerError(words, { operation: "publish" })
      const culprits = Broker.fateOf(error) === "rejected" ? attributeClose(error.detail, [...unconfirmed]) : []
      if (culprits.length > 0) for (const one of unconfirmed) one.part = "bystander"
      for (const one of culprits) one.part = "culprit"
    })
    // A publication is not confirmed while a return may be its return. Of several like it, none is.
    channel.on("return", (message) => {
      for (const one of unconfirmed) if (mayBe(one.publication, message)) one.isReturned = true
    })

    const leave = (one: Written): void => {
      unconfirmed.delete(one)
      if (!isOpen && unconfirmed.size() === 0) channel.close().catch(() => {})
    }

    const confirms: Confirms = {
      live,
      isOpen: () => isOpen,
      write: (publication, onOutcome) => {
        const { queue } = publication
        const one = new Written(publication, confirms)
        const done = (error: unknown): void => {
          leave(one)
          // The server also confirms returned messages.
          if (one.isReturned) onOutcome(unroutable(publication))
          else if (error === null) onOutcome(undefined)
          else {
            const cause = one.part === "culprit" ? words : error
            onOutcome(toBrokerError(cause, { operation: "publish", queue }), one.part === "bystander")
          }
        }
        unconfirmed.add(one)
        try {
          writer.write(publication, done)
        } catch (error) {
          leave(one)
          onOutcome(ofEncoding(error, queue))
        }
        return one
      },
      giveUp: (one) => {
        isOpen = false
        leave(one)
      }
    }
    return confirms
  })

/** The current channel, on the live connection. */
export interface Channels {
  /** The channel, if publications can be written now. */
  readonly current: () => Confirms | undefined
  /**
   * Waits for a connection whose server does not block publishers, and opens a channel unless one is open. Fails if the server
   * refuses. If the connection was lost or the server did not answer, there is no channel yet, and the caller must try again.
   */
  readonly ready: Effect.Effect<void, BrokerError.BrokerError>
}

/** Whether another attempt may succeed: the server did not answer, or the connection was lost without a refusal. */
const isPassing = (live: Live, error: BrokerError.BrokerError): boolean =>
  error.reason === "Timeout" || (live.isGone() && Broker.fateOf(error) !== "rejected")

/** Opens no channel at first. `timeout` limits opening one, in milliseconds. */
export const make = (connection: Connection, timeout: number): Channels => {
  let channel: Confirms | undefined

  const current = (): Confirms | undefined =>
    channel?.isOpen() === true && connection.current() === channel.live && channel.live.blockedBy() === undefined
      ? channel
      : undefined

  const ready = Effect.gen(function* () {
    const live = yield* connection.live
    yield* live.unblocked.await
    if (current() !== undefined) return
    const opened = yield* Effect.result(open(live, timeout))
    if (Result.isSuccess(opened)) channel = opened.success
    else if (!isPassing(live, opened.failure)) return yield* opened.failure
  })

  return { current, ready }
}
