/**
 * The messages of a channel that are in flight or deferred.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | a second copy of a message that is in flight, which a kill may leave, is sent and forgotten | `pushInFlightMessage` in channel.go |
 * | attempts are counted when a message is sent, in 16 bits | `messagePump` in protocol_v2.go |
 * | only the connection that received a message may settle it, while it is in flight | `popInFlightMessage` in channel.go |
 * | a late command settles the next delivery, if that went to the same connection | same place |
 * | messages of a closed connection are redelivered when their lease has ended, not before | `RemoveClient` in channel.go |
 * | TOUCH extends a lease from now on, at most to `--max-msg-timeout` after the delivery | `TouchMessage` in channel.go |
 */
import type { Host } from "../Host.ts"
import type * as Facts from "./Facts.ts"
import type { Flags } from "./Flags.ts"
import type { Message } from "./Messages.ts"
import type { Scan } from "./Scan.ts"

/** A subscribed connection. */
export interface Client {
  readonly clientId: string
  /** The lease of its deliveries, in milliseconds. */
  readonly lease: number
  /** Whether it may get one more message. */
  readonly isReady: () => boolean
  readonly send: (message: Message) => void
  /** A message of this client is no longer in flight, because its lease has ended. */
  readonly timedOut: () => void
  /** None of its messages is in flight any more. */
  readonly emptied: () => void
  readonly close: () => void
}

/** A message in flight. Times are in milliseconds since the epoch. */
interface Flight {
  readonly message: Message
  readonly client: Client
  readonly delivery: Facts.Delivery
  readonly since: number
  end: number
}

/** Why a command failed, in nsqd's words; `undefined` if it did not. */
export type Failure = "ID not in flight" | "client does not own message" | undefined

export interface Flights {
  /** Sends a message to a client. Returns the delivery. */
  readonly send: (message: Message, client: Client) => Facts.Delivery
  /** Whether a copy of this message is in flight. */
  readonly has: (id: string) => boolean
  /** Ends the flight of a message of this client. */
  readonly land: (client: Client, id: string) => Flight | Exclude<Failure, undefined>
  readonly touch: (client: Client, id: string) => Failure
  readonly defer: (message: Message, delay: number) => void
  /** Ends all flights and deferrals. */
  readonly recall: () => ReadonlyArray<{ readonly message: Message; readonly delivery?: Facts.Delivery }>
  readonly counts: () => { readonly inFlight: number; readonly deferred: number }
  /** Ends the scans. */
  readonly end: () => void
}

/** The surroundings of flights. */
export interface Env {
  readonly host: Host
  readonly flags: Flags
  readonly scan: Scan
  /** Returns how long a lease of these milliseconds lasts. */
  readonly lasts: (lease: number) => number
  /** The next number of a delivery. */
  readonly number: () => number
}

/** Events of a scan. */
interface On {
  /** A lease has ended. */
  readonly ended: (flight: Flight) => void
  /** A deferred message is due. */
  readonly due: (message: Message) => void
  /** The scan is over. */
  readonly scanned: () => void
}

/** The items whose time has come, the earliest first. */
const over = <A>(all: Iterable<A>, timeOf: (item: A) => number, now: number): ReadonlyArray<A> =>
  [...all].filter((item) => timeOf(item) <= now).toSorted((a, b) => timeOf(a) - timeOf(b))

/** No messages. */
export const make = ({ flags, host, lasts, number, scan }: Env, on: On): Flights => {
  const inFlight = new Map<string, Flight>()
  const deferred = new Map<string, { readonly message: Message; readonly due: number }>()

  const land: Flights["land"] = (client, id) => {
    const flight = inFlight.get(id)
    if (flight === undefined) return "ID not in flight"
    if (flight.client !== client) return "client does not own message"
    inFlight.delete(id)
    return flight
  }

  const scanned = scan.add(() => {
    const now = host.now()
    for (const flight of over(inFlight.values(), ({ end }) => end, now)) {
      inFlight.delete(flight.message.id)
      on.ended(flight)
    }
    for (const { message } of over(deferred.values(), ({ due }) => due, now)) {
      deferred.delete(message.id)
      on.due(message)
    }
    on.scanned()
    let next = Number.POSITIVE_INFINITY
    for (const { end } of inFlight.values()) next = Math.min(next, end)
    for (const { due } of deferred.values()) next = Math.min(next, due)
    return next
  })

  return {
    send: (message, client) => {
      message.attempts = (message.attempts + 1) & 0xffff
      const delivery = { number: number(), attempts: message.attempts, clientId: client.clientId }
      const since = host.now()
      const end = since + lasts(client.lease)
      if (!inFlight.has(message.id)) inFlight.set(message.id, { message, client, delivery, since, end })
      scanned.until(end)
      client.send(message)
      return delivery
    },
    has: (id) => inFlight.has(id),
    land,
    touch: (client, id) => {
      const flight = land(client, id)
      if (typeof flight === "string") return flight
      inFlight.set(id, flight)
      flight.end = Math.min(host.now() + client.lease, flight.since + flags.maxMsgTimeout)
      scanned.until(flight.end)
      return undefined
    },
    defer: (message, delay) => {
      const due = host.now() + delay
      deferred.set(message.id, { message, due })
      scanned.until(due)
    },
    recall: () => {
      const all = [...inFlight.values(), ...deferred.values()]
      inFlight.clear()
      deferred.clear()
      return all
    },
    counts: () => ({ inFlight: inFlight.size, deferred: deferred.size }),
    end: scanned.end
  }
}
