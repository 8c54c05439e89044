/**
 * A channel: messages that wait, are deferred, or are in flight.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | attempts are counted when a message is sent, in 16 bits | `messagePump` in protocol_v2.go |
 * | only the connection that received a message may settle it, while it is in flight | `popInFlightMessage` in channel.go |
 * | a late command settles the next delivery, if that went to the same connection | same place |
 * | messages of a closed connection are redelivered when their lease has ended, not before | `RemoveClient` in channel.go |
 * | TOUCH extends a lease from now on, at most to `--max-msg-timeout` after the delivery | `TouchMessage` in channel.go |
 * | a returned message goes to the end of its channel | `put` in channel.go |
 * | emptying a channel removes deferred messages and those in flight as well | `Empty` in channel.go |
 * | a paused channel sends nothing; its messages may still be settled | `IsReadyForMessages` in client_v2.go |
 * | an ephemeral channel is deleted with its last client | `RemoveClient` in channel.go |
 * | an orderly shutdown writes all messages to the disk, and forgets their deferrals | `flush` in channel.go |
 * | a killed nsqd loses deferred messages, those in flight, and those in memory; for those on disk see Disk.ts | https://nsq.io/overview/features_and_guarantees.html |
 */
import type { Host } from "../Host.ts"
import * as Backlog from "./Backlog.ts"
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

export interface Statistics {
  readonly name: string
  readonly depth: number
  readonly onDisk: number
  readonly inFlight: number
  readonly deferred: number
  readonly messages: number
  readonly requeues: number
  readonly timeouts: number
  readonly clients: ReadonlyArray<Client>
  readonly isPaused: boolean
}

export interface Channel {
  readonly name: string
  /** Adds a message, due after its deferral. */
  readonly put: (message: Message) => void
  readonly subscribe: (client: Client) => void
  readonly leave: (client: Client) => void
  /** Sends waiting messages to clients that are ready. */
  readonly serve: () => void
  readonly touch: (client: Client, id: string) => Failure
  readonly finish: (client: Client, id: string) => Failure
  readonly requeue: (client: Client, id: string, delay: number) => Failure
  readonly pause: (isPaused: boolean) => void
  readonly isPaused: () => boolean
  readonly empty: () => void
  /** Ends it with its messages, and closes its clients or forgets them. */
  readonly remove: (clients: "close" | "forget") => void
  /** Ends its clients, and keeps what survives. */
  readonly shutDown: (isOrderly: boolean) => void
  /** Returns the waiting messages, as an observer outside sees them. */
  readonly waiting: () => ReadonlyArray<Message>
  readonly statistics: () => Statistics
}

/** The parts that channels share. */
export interface Env {
  readonly host: Host
  readonly flags: Flags
  readonly scan: Scan
  readonly report: Facts.Report
  /** The next number of a delivery. */
  readonly number: () => number
  /** The next number of a copy. */
  readonly copies: () => number
}

/** An empty channel. `abandoned` is called when the last client has left. */
// Long, because its commands share the messages of one channel.
export const make = (
  { copies, flags, host, number, report, scan }: Env,
  place: Facts.Place & { readonly channel: string },
  abandoned: () => void
): Channel => {
  const inFlight = new Map<string, Flight>()
  const deferred = new Map<string, { readonly message: Message; readonly due: number }>()
  /** Those that were served last come last. */
  const clients = new Set<Client>()
  let [messages, requeues, timeouts] = [0, 0, 0]
  let isPaused = false

  const gone = (message: Message, why: Facts.End, delivery?: Facts.Delivery): void =>
    report({ _tag: "Gone", place, message, delivery, why })
  const back = (message: Message, due: number, why: Facts.Return, delivery?: Facts.Delivery): void =>
    report({ _tag: "Back", place, message, delivery, due, why })

  const backlog = Backlog.make(host, flags, place.channel.endsWith("#ephemeral"), (message) =>
    gone(message, "forgotten")
  )

  /** The copy that nsqd reads again: it has forgotten that it has read it. */
  const revive = (message: Message): Message => {
    const again = { ...message, copy: copies() }
    report({ _tag: "Stored", place, message: again, due: host.now(), clientId: undefined })
    return again
  }

  const defer = (message: Message, delay: number): void => {
    const due = host.now() + delay
    deferred.set(message.id, { message, due })
    scanned.until(due)
  }

  const send = (message: Message, client: Client): void => {
    message.attempts = (message.attempts + 1) & 0xffff
    const delivery = { number: number(), attempts: message.attempts, clientId: client.clientId }
    const since = host.now()
    const end = since + client.lease
    inFlight.set(message.id, { message, client, delivery, since, end })
    scanned.until(end)
    report({ _tag: "HandedOut", place, message, delivery })
    client.send(message)
  }

  const serve = (): void => {
    while (!isPaused && backlog.size() > 0) {
      const client = [...clients].find((each) => each.isReady())
      if (client === undefined) return
      clients.delete(client)
      clients.add(client)
      send(backlog.take()!, client)
    }
  }

  const land = (client: Client, id: string): Flight | Exclude<Failure, undefined> => {
    const flight = inFlight.get(id)
    if (flight === undefined) return "ID not in flight"
    if (flight.client !== client) return "client does not own message"
    inFlight.delete(id)
    return flight
  }

  const scanned = scan.add(() => {
    const now = host.now()
    const ended = [...inFlight.values()].filter(({ end }) => end <= now).toSorted((a, b) => a.end - b.end)
    for (const { client, delivery, message } of ended) {
      inFlight.delete(message.id)
      timeouts++
      if (clients.has(client)) client.timedOut()
      back(message, now, "timeout", delivery)
      backlog.put(message)
    }
    const due = [...deferred.values()].filter((each) => each.due <= now).toSorted((a, b) => a.due - b.due)
    for (const { message } of due) {
      deferred.delete(message.id)
      backlog.put(message)
    }
    serve()
    let next = Number.POSITIVE_INFINITY
    for (const { end } of inFlight.values()) next = Math.min(next, end)
    for (const each of deferred.values()) next = Math.min(next, each.due)
    return next
  })

  /** Ends deferrals and flights. */
  const recall = (): ReadonlyArray<{ readonly message: Message; readonly delivery?: Facts.Delivery }> => {
    const all = [...inFlight.values(), ...deferred.values()]
    inFlight.clear()
    deferred.clear()
    return all
  }

  const discard = (why: Facts.End): void => {
    for (const message of backlog.clear()) gone(message, why)
    for (const { delivery, message } of recall()) gone(message, why, delivery)
  }

  return {
    name: place.channel,
    put: (message) => {
      messages++
      if (message.deferred > 0) defer(message, message.deferred)
      else backlog.put(message)
      serve()
    },
    subscribe: (client) => void clients.add(client),
    leave: (client) => {
      if (clients.delete(client) && clients.size === 0) abandoned()
    },
    serve,
    touch: (client, id) => {
      const flight = land(client, id)
      if (typeof flight === "string") return flight
      inFlight.set(id, flight)
      flight.end = Math.min(host.now() + client.lease, flight.since + flags.maxMsgTimeout)
      scanned.until(flight.end)
      return undefined
    },
    finish: (client, id) => {
      const flight = land(client, id)
      if (typeof flight === "string") return flight
      gone(flight.message, "finished", flight.delivery)
      return undefined
    },
    requeue: (client, id, delay) => {
      const flight = land(client, id)
      if (typeof flight === "string") return flight
      requeues++
      back(flight.message, host.now() + delay, "requeued", flight.delivery)
      if (delay > 0) defer(flight.message, delay)
      else backlog.put(flight.message)
      return undefined
    },
    pause: (wanted) => {
      isPaused = wanted
      serve()
    },
    isPaused: () => isPaused,
    empty: () => {
      discard("emptied")
      for (const client of clients) client.emptied()
    },
    remove: (how) => {
      scanned.end()
      if (how === "close") for (const client of clients) client.close()
      clients.clear()
      discard("deleted")
    },
    shutDown: (isOrderly) => {
      clients.clear()
      const recalled = recall()
      for (const { delivery, message } of recalled) {
        if (isOrderly) back(message, host.now(), "restart", delivery)
        else gone(message, "forgotten", delivery)
      }
      if (isOrderly) backlog.flush(recalled.map(({ message }) => message))
      else for (const message of backlog.kill(revive)) gone(message, "forgotten")
    },
    waiting: backlog.all,
    statistics: () => ({
      name: place.channel,
      depth: backlog.size(),
      onDisk: backlog.onDisk(),
      inFlight: inFlight.size,
      deferred: deferred.size,
      messages,
      requeues,
      timeouts,
      clients: [...clients],
      isPaused
    })
  }
}
