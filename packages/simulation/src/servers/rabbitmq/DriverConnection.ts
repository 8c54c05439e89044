/**
 * A connection of the driver to a simulated server, with latency in both directions. The source of all rules about the driver is
 * amqplib 2.3.1, `lib/connection.js`.
 *
 * | rule |
 * | --- |
 * | the end of a connection ends all channels; requests without an answer fail |
 * | the client learns of a broken connection some time after the server, or before it |
 * | a connection that the server blocks closes without an answer |
 * | a client opens no more channels than channel_max |
 */
import type * as Driver from "@requeue/adapter-rabbitmq/driver"
import { DriverChannel, type Link } from "./DriverChannel.ts"
import type { Sent } from "./Faults.ts"
import * as Line from "./Line.ts"
import { format, type Refusal } from "./Refusal.ts"
import type { Connection, Server } from "./Server.ts"
import type { Delivery } from "./Deliveries.ts"

/** A connection, and the lines that carry it. */
export class SimulatedConnection {
  readonly #server: Server
  readonly #on: Driver.Listener
  readonly #up: Line.Line
  readonly #down: Line.Line
  readonly #peer: Connection
  readonly #channels = new Map<number, DriverChannel>()
  readonly #arrived: (message: object, delivery: Delivery) => void
  #heard = 0
  #isBlocked = false
  /** Why it has ended; `undefined` while it is open. */
  #ended: string | undefined

  constructor(
    server: Server,
    user: string,
    on: Driver.Listener,
    arrived: (message: object, delivery: Delivery) => void
  ) {
    const { host, settings } = server
    this.#server = server
    this.#on = on
    this.#arrived = arrived
    this.#up = Line.make(host, settings.latency)
    this.#down = Line.make(host, settings.latency)
    this.#peer = server.connect(user, {
      closed: (refusal) => this.#down.send(() => this.#closed(refusal)),
      blocked: (reason) =>
        this.#down.send(() => {
          this.#isBlocked = true
          on.blocked(reason)
        }),
      unblocked: () =>
        this.#down.send(() => {
          this.#isBlocked = false
          on.unblocked()
        }),
      cut: () => this.cut()
    })
  }

  /** The connection, as the adapter sees it. */
  get driver(): Driver.DriverConnection {
    const { settings, version } = this.#server
    return {
      version,
      heard: () => this.#heard,
      channelMax: settings.channelMax,
      channel: () => this.#open(false),
      confirmChannel: () => this.#open(true),
      updateSecret: () => new Promise((resolve) => this.#send(other, () => this.#down.send(resolve))),
      close: () => this.#close(),
      destroy: (because = "closed by this client") => queueMicrotask(() => this.#lost(new Error(because)))
    }
  }

  /** Breaks the connection. Both sides learn of it some time later, and nothing arrives any more. */
  cut(): void {
    const { host, settings } = this.#server
    this.#up.cut()
    this.#down.cut()
    host.after(settings.latency, () => {
      this.#peer.lost()
      this.#lost(new Error("Unexpected close"))
    })
  }

  async #open(confirms: boolean): Promise<DriverChannel> {
    const { channelMax, frameMax } = this.#server.settings
    const number = Array.from({ length: this.#channels.size + 1 }, (_, index) => index + 1).find(
      (free) => !this.#channels.has(free)
    )!
    if (number > channelMax) throw new Error("No channels left to allocate")
    const link: Link = {
      frameMax,
      send: (sent, run) => this.#send(sent, run),
      answer: (arrive) =>
        this.#down.send(() => {
          this.#heard++
          arrive()
        }),
      open: this.#peer.open,
      receive: this.#peer.receive,
      released: () => this.#channels.delete(number),
      arrived: this.#arrived
    }
    const channel = new DriverChannel(link, number)
    this.#channels.set(number, channel)
    // The driver sends the first frame of a channel in the next job only.
    await Promise.resolve()
    if (this.#ended !== undefined) throw new Error(`Connection closed (${this.#ended})`)
    return channel.open(confirms)
  }

  #send(sent: Sent, arrive: () => void): void {
    const fault = this.#server.faults.of(sent)
    switch (fault?.kind) {
      case undefined:
        return this.#up.send(arrive)
      case "lostRequest":
        return this.cut()
      case "lostAnswer":
        return this.#up.send(() => {
          this.#down.cut()
          arrive()
          this.cut()
        })
      case "lateAnswer":
        return this.#up.send(() => {
          fault.release = this.#down.hold()
          arrive()
        })
    }
  }

  #close(): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new Error(`Connection closed (${this.#ended})`))
    return new Promise((resolve) => {
      if (this.#isBlocked) {
        resolve()
        this.#peer.lost()
        return this.#end(undefined)
      }
      this.#send(other, () => {
        this.#peer.lost()
        this.#down.send(() => {
          resolve()
          this.#end(undefined)
        })
      })
    })
  }

  #closed(refusal: Refusal): void {
    this.#end(new Error(`Connection closed: ${format(refusal)}`))
  }

  /** The socket has failed. */
  #lost(error: Error): void {
    this.#up.cut()
    this.#down.cut()
    this.#server.host.after(this.#server.settings.latency, this.#peer.lost)
    this.#end(error)
  }

  #end(error: Error | undefined): void {
    if (this.#ended !== undefined) return
    this.#ended = error === undefined ? "by client" : String(error)
    this.#up.cut()
    this.#down.cut()
    const channels = [...this.#channels.values()]
    for (const channel of channels) channel.end()
    this.#on.closed(error)
  }
}

const other: Sent = { name: "other", about: "" }
