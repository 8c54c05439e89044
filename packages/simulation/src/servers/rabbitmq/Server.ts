/**
 * A RabbitMQ server with one virtual host, in the time of its host.
 *
 * | rule | source |
 * | --- | --- |
 * | a refusal closes the channel, or the connection | https://www.rabbitmq.com/docs/channels#error-handling |
 * | frames on a channel that the server has closed are ignored | same page |
 * | during an alarm a connection that publishes is blocked: nothing is read from it | https://www.rabbitmq.com/docs/connection-blocked |
 * | a frame larger than frame_max closes the connection | https://www.rabbitmq.com/amqp-0-9-1-reference#connection.tune |
 * | a restart keeps durable queues; quorum queues keep all messages, classic ones the persistent ones | https://www.rabbitmq.com/docs/queues#durability |
 */
import type { Host } from "../Host.ts"
import * as Faults from "./Faults.ts"
import type { Entry } from "./Entry.ts"
import type { Fact } from "./Fact.ts"
import { Refusal } from "./Refusal.ts"
import type { Publication } from "./Message.ts"
import { type Ends, Session, type Verdict } from "./Session.ts"
import type { Type } from "./Settings.ts"
import * as Version from "./Version.ts"
import { Vhost } from "./Vhost.ts"

/** The configuration of a server. */
export interface Options {
  /** Default: 4.3.6. */
  readonly version?: string | undefined
  /** The name of the virtual host. Default: `/`. */
  readonly vhost?: string | undefined
  /** Default: classic. */
  readonly defaultQueueType?: Type | undefined
  /** The largest frame in bytes. Default: 131,072. */
  readonly frameMax?: number | undefined
  /** Default: 2,047. */
  readonly channelMax?: number | undefined
  /** The largest message in bytes. Default: that of the version. */
  readonly maxMessageSize?: number | undefined
  /** Milliseconds of one direction of a connection. Default: 1. */
  readonly latency?: number | undefined
  /** Receives what happens to messages. Default: nothing does. */
  readonly onFact?: ((fact: Fact) => void) | undefined
  /** Decides about a publication before the rules do. Default: the rules decide about all. */
  readonly verdict?: ((publication: Publication) => Verdict | undefined) | undefined
}

/** A frame on a channel, with the driver's name of its method. */
export interface Frame {
  readonly method: string
  /** The bytes of its largest part. */
  readonly size: number
  readonly run: () => void
}

/** A connection, as the server sees it. */
export interface Connection {
  readonly open: (ends: Ends) => Session
  /** Carries out a frame of a channel now, or once the connection is not blocked. */
  readonly receive: (session: Session, ends: Ends, frame: Frame) => void
  /** The client has closed it, or it is lost. */
  readonly lost: () => void
}

/** The frames that the server sends on a connection without a request. */
export interface ConnectionEnds {
  readonly closed: (refusal: Refusal) => void
  readonly blocked: (reason: string) => void
  readonly unblocked: () => void
  /** The connection breaks without a word. */
  readonly cut: () => void
}

interface Peer {
  readonly ends: ConnectionEnds
  readonly sessions: Set<Session>
  readonly waiting: Array<() => void>
  isOpen: boolean
  isBlocked: boolean
}

const defaults = (version: string) => ({
  vhost: "/",
  defaultQueueType: "classic" as const,
  frameMax: 131_072,
  channelMax: 2047,
  maxMessageSize: (Version.isAtLeast(version, "4.0.0") ? 16 : 128) * 1024 * 1024,
  latency: 1,
  onFact: () => {},
  verdict: () => undefined
})

const isPersistent = ({ message }: Entry): boolean => message.properties.deliveryMode === 2

/** A server. */
export class Server {
  readonly host: Host
  readonly version: string
  readonly settings: ReturnType<typeof defaults> & { readonly defaultQueueType: Type }
  readonly vhost: Vhost
  readonly faults: Faults.Faults = Faults.make()
  readonly #peers = new Set<Peer>()
  #alarm: string | undefined
  isUp = true

  constructor(host: Host, options: Options = {}) {
    this.host = host
    this.version = options.version ?? "4.3.6"
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
    this.settings = { ...defaults(this.version), ...given }
    const { defaultQueueType, onFact, vhost } = this.settings
    this.vhost = new Vhost({ host, version: this.version, name: vhost, defaultQueueType, onFact })
  }

  connect(user: string, client: string, ends: ConnectionEnds): Connection {
    const { host, settings, version, vhost } = this
    const { frameMax, maxMessageSize, verdict } = settings
    const peer: Peer = { ends, sessions: new Set(), waiting: [], isOpen: true, isBlocked: false }
    this.#peers.add(peer)
    return {
      open: (channel) => {
        const session = new Session({
          host,
          version,
          vhost,
          owner: peer,
          user,
          client,
          maxMessageSize,
          verdict,
          ends: channel
        })
        peer.sessions.add(session)
        return session
      },
      receive: (session, channel, { method, run, size }) => {
        const carryOut = (): void => {
          if (!session.isOpen || !peer.isOpen) return
          try {
            if (size > frameMax) throw new Refusal(501, "type 2, all octets = <<>>: {frame_too_large,0,0}")
            run()
          } catch (refusal) {
            if (!(refusal instanceof Refusal)) throw refusal
            refusal.method = method
            if (refusal.closesConnection) return this.#close(peer, refusal)
            session.close()
            peer.sessions.delete(session)
            channel.closed(refusal)
          }
          if (method === "BasicPublish") this.#block(peer)
        }
        if (peer.isBlocked) peer.waiting.push(carryOut)
        else carryOut()
      },
      lost: () => this.#end(peer)
    }
  }

  /** Breaks all connections, as a network does. */
  cut(): void {
    for (const { ends } of this.#peers) ends.cut()
  }

  /** Starts an alarm, or ends it. */
  alarm(reason: string | undefined): void {
    this.#alarm = reason
    if (reason !== undefined) return
    for (const peer of this.#peers) {
      if (!peer.isBlocked) continue
      peer.isBlocked = false
      peer.ends.unblocked()
      for (const carryOut of peer.waiting.splice(0)) carryOut()
    }
  }

  /** Ends, and starts again with what is on disk after this many milliseconds; `kill`: without closing connections. */
  restart(away: number, how: "orderly" | "kill" = "orderly"): void {
    this.isUp = false
    const refusal = new Refusal(320, "broker forced connection closure with reason 'shutdown'")
    for (const peer of this.#peers) {
      if (how === "orderly") this.#close(peer, refusal)
      else {
        this.#end(peer)
        peer.ends.cut()
      }
    }
    for (const queue of this.vhost.queues.values()) {
      const { isDurable, name } = queue.declaration
      if (!isDurable) this.vhost.deleteQueue(name)
      else if (!queue.isQuorum) queue.forget(isPersistent)
    }
    this.host.after(away, () => (this.isUp = true))
  }

  #block(peer: Peer): void {
    if (this.#alarm === undefined || peer.isBlocked) return
    peer.isBlocked = true
    peer.ends.blocked(this.#alarm)
  }

  #close(peer: Peer, refusal: Refusal): void {
    this.#end(peer)
    peer.ends.closed(refusal)
  }

  #end(peer: Peer): void {
    if (!peer.isOpen) return
    peer.isOpen = false
    this.#peers.delete(peer)
    // All first, because a queue would deliver the messages of one channel to the next.
    for (const session of peer.sessions) {
      session.flush()
      session.isEnding = true
    }
    for (const session of peer.sessions) session.close()
    for (const queue of this.vhost.queues.values())
      if (queue.declaration.owner === peer) this.vhost.deleteQueue(queue.declaration.name)
  }
}
