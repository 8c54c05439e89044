/**
 * A channel: messages that wait, are deferred, or are in flight, and the clients that share them.
 *
 * | rule | source in https://github.com/nsqio/nsq/tree/v1.3.0/nsqd |
 * | --- | --- |
 * | a returned message goes to the end of its channel | `put` in channel.go |
 * | emptying a channel removes deferred messages and those in flight as well | `Empty` in channel.go |
 * | a paused channel sends nothing; its messages may still be settled | `IsReadyForMessages` in client_v2.go |
 * | an ephemeral channel is deleted with its last client | `RemoveClient` in channel.go |
 * | an orderly shutdown writes all messages to the disk, and forgets their deferrals | `flush` in channel.go |
 * | a killed nsqd loses deferred messages, those in flight, and those in memory; for those on disk see Disk.ts | https://nsq.io/overview/features_and_guarantees.html |
 */
import * as Backlog from "./Backlog.ts"
import type * as Facts from "./Facts.ts"
import * as Flights from "./Flights.ts"
import type { Message } from "./Messages.ts"

export interface Statistics {
  readonly name: string
  readonly depth: number
  readonly onDisk: number
  readonly inFlight: number
  readonly deferred: number
  readonly messages: number
  readonly requeues: number
  readonly timeouts: number
  readonly clients: ReadonlyArray<Flights.Client>
  readonly isPaused: boolean
}

export interface Channel {
  readonly name: string
  /** Adds a message, due after its deferral. */
  readonly put: (message: Message) => void
  readonly subscribe: (client: Flights.Client) => void
  readonly leave: (client: Flights.Client) => void
  /** Sends waiting messages to clients that are ready. */
  readonly serve: () => void
  readonly touch: (client: Flights.Client, id: string) => Flights.Failure
  readonly finish: (client: Flights.Client, id: string) => Flights.Failure
  readonly requeue: (client: Flights.Client, id: string, delay: number) => Flights.Failure
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
export interface Env extends Flights.Env {
  readonly report: Facts.Report
  /** The next number of a copy. */
  readonly copies: () => number
}

/** An empty channel. `abandoned` is called when the last client has left. */
// Long, because its commands share the messages of one channel.
export const make = (env: Env, place: Facts.Place & { readonly channel: string }, abandoned: () => void): Channel => {
  const { copies, flags, host, report } = env
  /** Those that were served last come last. */
  const clients = new Set<Flights.Client>()
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

  const serve = (): void => {
    while (!isPaused && backlog.size() > 0) {
      const client = [...clients].find((each) => each.isReady())
      if (client === undefined) return
      clients.delete(client)
      clients.add(client)
      const message = backlog.take()!
      const isDouble = flights.has(message.id)
      const delivery = flights.send(message, client)
      report({ _tag: "HandedOut", place, message, delivery })
      if (isDouble) gone(message, "forgotten", delivery)
    }
  }

  const flights = Flights.make(env, {
    ended: ({ client, delivery, message }) => {
      timeouts++
      if (clients.has(client)) client.timedOut()
      back(message, host.now(), "timeout", delivery)
      backlog.put(message)
    },
    due: (message) => {
      report({ _tag: "Due", place, message })
      backlog.put(message)
    },
    scanned: serve
  })

  const discard = (why: Facts.End): void => {
    for (const message of backlog.clear()) gone(message, why)
    for (const { delivery, message } of flights.recall()) gone(message, why, delivery)
  }

  return {
    name: place.channel,
    put: (message) => {
      messages++
      if (message.deferred > 0) flights.defer(message, message.deferred)
      else backlog.put(message)
      serve()
    },
    subscribe: (client) => void clients.add(client),
    leave: (client) => {
      if (clients.delete(client) && clients.size === 0) abandoned()
    },
    serve,
    touch: flights.touch,
    finish: (client, id) => {
      const flight = flights.land(client, id)
      if (typeof flight === "string") return flight
      gone(flight.message, "finished", flight.delivery)
      return undefined
    },
    requeue: (client, id, delay) => {
      const flight = flights.land(client, id)
      if (typeof flight === "string") return flight
      requeues++
      back(flight.message, host.now() + delay, "requeued", flight.delivery)
      if (delay > 0) flights.defer(flight.message, delay)
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
      flights.end()
      if (how === "close") for (const client of clients) client.close()
      clients.clear()
      discard("deleted")
    },
    shutDown: (isOrderly) => {
      clients.clear()
      const recalled = flights.recall()
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
      ...flights.counts(),
      messages,
      requeues,
      timeouts,
      clients: [...clients],
      isPaused
    })
  }
}
