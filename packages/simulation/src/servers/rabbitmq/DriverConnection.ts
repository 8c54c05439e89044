/**
 * A connection of the driver to a simulated server. The source of all rules about the driver is amqplib 2.3.1,
 * `lib/connection.js`.
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
import type { Network, Way } from "./Network.ts"
import { format, type Refusal } from "./Refusal.ts"
import type { Connection, Server } from "./Server.ts"

/** A client of a server. */
export interface Client extends Pick<Link, "arrived" | "publishes"> {
  readonly server: Server
  readonly network: Network
  /** Its name in the server's facts. */
  readonly name: string
}

/** A connection, and the way that carries it. */
export class SimulatedConnection {
  readonly #client: Client
  readonly #on: Driver.Listener
  readonly #way: Way
  readonly #peer: Connection
  readonly #channels = new Map<number, DriverChannel>()
  #heard = 0
  #isBlocked = false
  /** Why it has ended; `undefined` while it is open. */
  #ended: string | undefined

  constructor(client: Client, role: string, user: string, on: Driver.Listener) {
    this.#client = client
    this.#on = on
    this.#way = client.network(role, {
      server: () => this.#peer.lost(),
      client: () => this.#end(new Error("Unexpected close"))
    })
    this.#peer = client.server.connect(user, client.name, {
      closed: (refusal) => this.#way.down(() => this.#closed(refusal)),
      blocked: (reason) =>
        this.#way.down(() => {
          this.#isBlocked = true
          on.blocked(reason)
        }),
      unblocked: () =>
        this.#way.down(() => {
          this.#isBlocked = false
          on.unblocked()
        }),
      cut: () => this.cut()
    })
  }

  /** The connection, as the adapter sees it. */
  get driver(): Driver.DriverConnection {
    const { settings, version } = this.#client.server
    return {
      version,
      heard: () => this.#heard,
      channelMax: settings.channelMax,
      channel: () => this.#open(false),
      confirmChannel: () => this.#open(true),
      updateSecret: () => new Promise((resolve) => this.#way.up(other, () => this.#way.down(resolve, true))),
      close: () => this.#close(),
      destroy: (because = "closed by this client") => queueMicrotask(() => this.#end(new Error(because)))
    }
  }

  /** Breaks the connection. Both sides learn of it some time later, and nothing arrives any more. */
  cut(): void {
    this.#way.cut()
  }

  async #open(confirms: boolean): Promise<DriverChannel> {
    const { arrived, publishes, server } = this.#client
    const { channelMax, frameMax } = server.settings
    const number = Array.from({ length: this.#channels.size + 1 }, (_, index) => index + 1).find(
      (free) => !this.#channels.has(free)
    )!
    if (number > channelMax) throw new Error("No channels left to allocate")
    const link: Link = {
      frameMax,
      send: this.#way.up,
      answer: (arrive, isAsked) =>
        this.#way.down(() => {
          this.#heard++
          arrive()
        }, isAsked),
      open: this.#peer.open,
      receive: this.#peer.receive,
      released: () => this.#channels.delete(number),
      arrived,
      publishes
    }
    const channel = new DriverChannel(link, number)
    this.#channels.set(number, channel)
    // The driver sends the first frame of a channel in the next job only.
    await Promise.resolve()
    if (this.#ended !== undefined) throw new Error(`Connection closed (${this.#ended})`)
    return channel.open(confirms)
  }

  #close(): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new Error(`Connection closed (${this.#ended})`))
    return new Promise((resolve) => {
      if (this.#isBlocked) {
        resolve()
        this.#peer.lost()
        return this.#end(undefined)
      }
      this.#way.up(other, () => {
        this.#peer.lost()
        this.#way.down(() => {
          resolve()
          this.#end(undefined)
        }, true)
      })
    })
  }

  #closed(refusal: Refusal): void {
    this.#end(new Error(`Connection closed: ${format(refusal)}`))
  }

  #end(error: Error | undefined): void {
    if (this.#ended !== undefined) return
    this.#ended = error === undefined ? "by client" : String(error)
    this.#way.cut()
    const channels = [...this.#channels.values()]
    for (const channel of channels) channel.end()
    this.#on.closed(error)
  }
}

const other: Sent = { name: "other", about: "" }
