/**
 * A channel on which the server confirms publications, and returns those that it cannot route.
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
 * Called once for a publication: with its error, or with `undefined` when the server has confirmed it. A bystander is lost
 * because the server has closed the channel on account of another publication; it may be sent again.
 */
export type OnOutcome = (error: BrokerError.BrokerError | undefined, isBystander?: boolean) => void

/** A channel in confirm mode. */
export interface Confirms {
  readonly live: Live
  readonly isOpen: () => boolean
  /** Writes a publication. */
  readonly write: (publication: Client.Publication, onOutcome: OnOutcome) => Written
  /** Gives one up: the channel takes no further ones, and is closed when those before have their outcomes. */
  readonly giveUp: (one: Written) => void
}

/** A publication that has been written. A class, because there is an object for every message. */
export class Written implements Bag.Member {
  place = -1
  /** Whether the server has returned it, or one that is like it. */
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
 * Whether a returned message may be this publication: a return has no delivery tag. The name of the copy, which the adapter makes,
 * decides. A publication that keeps its producer's headers has no such name, and every return of its route may be its own.
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
    /** The server's words for closing the channel. */
    let words: unknown
    channel.on("error", (error) => (words = error))
    // Before the driver's own listener, which fails what is unconfirmed: nothing that follows from that is written here.
    channel.prependListener("close", () => {
      isOpen = false
      if (words === undefined) return
      const error = toBrokerError(words, { operation: "publish" })
      const culprits = Broker.fateOf(error) === "rejected" ? attributeClose(error.detail, [...unconfirmed]) : []
      if (culprits.length > 0) for (const one of unconfirmed) one.part = "bystander"
      for (const one of culprits) one.part = "culprit"
    })
    // A publication is not confirmed while a return may be its own: where several are alike, none of them is.
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
          // The server confirms what it has returned.
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

/** The channel of the moment, on the live connection. */
export interface Channels {
  /** The channel, if publications can be written at this moment. */
  readonly current: () => Confirms | undefined
  /**
   * Waits for a connection whose server does not block publishers, and opens a channel unless there is one. Fails where the
   * server refuses that; where the connection was lost or did not answer there is no channel yet, and it is to be tried again.
   */
  readonly ready: Effect.Effect<void, BrokerError.BrokerError>
}

/** Whether another attempt may succeed: the server has not answered, or the connection was lost, and no refusal ended it. */
const isPassing = (live: Live, error: BrokerError.BrokerError): boolean =>
  error.reason === "Timeout" || (live.isGone() && Broker.fateOf(error) !== "rejected")

/** No channel, at first. `timeout` is for opening one, in milliseconds. */
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
