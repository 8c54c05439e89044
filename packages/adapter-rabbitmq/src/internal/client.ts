/**
 * The only file that imports the driver, and what is Node's own: it opens connections, and names the types that the other
 * files use.
 */
import {
  type Channel,
  type ConfirmChannel,
  connect as open,
  credentials,
  type ConsumeMessage,
  type Message
} from "amqplib"
import { createHash } from "node:crypto"
import type { Socket } from "node:net"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../RabbitMqOptions.ts"
import type { Address } from "./address.ts"
import type { Account } from "./connect/credentials.ts"

export type { Channel, ConfirmChannel }

/** A message as it came from the broker. */
export type Incoming = Pick<ConsumeMessage, "content"> & {
  readonly fields: { readonly deliveryTag: number; readonly redelivered: boolean }
  readonly properties: Properties
}

/** The AMQP properties that are read or written. */
export interface Properties {
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  readonly messageId?: unknown
  readonly timestamp?: unknown
  readonly contentType?: unknown
  readonly contentEncoding?: unknown
  readonly priority?: unknown
  readonly correlationId?: unknown
  readonly replyTo?: unknown
  readonly type?: unknown
  readonly appId?: unknown
  readonly expiration?: unknown
}

/** A message to be published, and its route; `options` are the AMQP properties, as the driver names them. */
export interface Publication {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly options: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, unknown>>
}

/** An open connection of the driver. */
export interface DriverConnection {
  /** The server's version, for example `3.10.8`. */
  readonly version: string
  readonly channel: () => Promise<Channel>
  readonly confirmChannel: () => Promise<ConfirmChannel>
  /** Tells the server another password or token; may never resolve on a dead connection. */
  readonly updateSecret: (secret: Redacted.Redacted) => Promise<void>
  /** Closes it, with the server's answer; may never resolve on a dead connection. */
  readonly close: () => Promise<void>
  /** Drops the socket. */
  readonly destroy: () => void
}

/** Callbacks for a connection's events. */
export interface Listener {
  /** Called once. */
  readonly closed: (error: unknown) => void
  /** Called when the server blocks publishers, because of an alarm of memory or disk. */
  readonly blocked: (reason: string) => void
  readonly unblocked: () => void
}

/** Opens a connection; `role` is the end of the name that the server shows for it. */
export const connect = async (
  settings: Settings,
  address: Address,
  account: Account,
  role: string,
  on: Listener
): Promise<DriverConnection> => {
  const { auth, tls } = settings
  const { passphrase, ...material } = tls
  const model = await open(
    {
      protocol: address.secure ? "amqps" : "amqp",
      hostname: address.hostname,
      port: address.port,
      vhost: encodeURIComponent(address.vhost),
      heartbeat: Math.max(1, Math.round(settings.heartbeat / 1000))
    },
    {
      credentials:
        auth === "external"
          ? credentials.external()
          : credentials.plain(account.username, Redacted.value(account.password)),
      noDelay: true,
      keepAlive: true,
      timeout: settings.connectTimeout,
      clientProperties: { connection_name: `${settings.connectionName}:${role}` },
      ...(address.secure ? material : {}),
      ...(passphrase === undefined ? {} : { passphrase: Redacted.value(passphrase) })
    }
  )
  const { stream } = model.connection as unknown as { readonly stream: Socket } // The driver's types lack its socket.
  coalesceWrites(stream)
  let failure: unknown
  let closed = false
  // Attached before anything is awaited: an `error` without a listener ends the process.
  model.on("error", (error) => (failure = error))
  model.on("close", (error) => {
    if (closed) return
    closed = true
    on.closed(failure ?? error)
  })
  model.on("blocked", on.blocked)
  model.on("unblocked", on.unblocked)
  const version: unknown = model.connection.serverProperties["version"]
  return {
    version: typeof version === "string" ? version : "0.0",
    channel: () => model.createChannel().then(guard),
    confirmChannel: () => model.createConfirmChannel().then(guard),
    updateSecret: (secret) => model.updateSecret(Buffer.from(Redacted.value(secret)), "renewed before it ends"),
    close: () => model.close(),
    destroy: () => stream.destroy()
  }
}

/**
 * Makes one packet of all frames that are written in one turn of the event loop. With `noDelay`, which keeps frames from
 * waiting for tens of milliseconds, each write is a packet, and the driver writes each frame alone.
 */
const coalesceWrites = (stream: Socket): void => {
  const write = stream.write.bind(stream) as (...frame: ReadonlyArray<unknown>) => boolean // Any of its overloads.
  const send = (): void => stream.uncork()
  stream.write = (...frame: ReadonlyArray<unknown>) => {
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(send)
    }
    return write(...frame)
  }
}

/** An `error` without a listener would end the process. The adapter listens to `close`, which follows it. */
const guard = <C extends Channel>(channel: C): C => {
  channel.on("error", () => {})
  return channel
}

/** One object for all headers that have the same names. */
const reused = new Map<string, Record<string, unknown>>()
const reuseLimit = 100

/**
 * Copies headers into the object that others of the same names have used. The driver uses its argument as
 * a prototype, and to set up a new prototype for every message takes longer than to encode the message. The driver has
 * read the headers when `publish` returns.
 */
const reuse = (headers: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const names = JSON.stringify(Object.keys(headers))
  const known = reused.get(names)
  if (known !== undefined) return Object.assign(known, headers)
  if (reused.size < reuseLimit) reused.set(names, { ...headers })
  return headers
}

/** Writes a publication. `done` is called with `null` when it is confirmed. Throws where the channel is closed. */
export const publish = (
  channel: ConfirmChannel,
  { content, exchange, headers, options, routingKey }: Publication,
  done: (error: unknown) => void
): void => {
  channel.publish(exchange, routingKey, content, { ...options, headers: reuse(headers) }, done)
}

const messageOf = (deliveryTag: number): Message => ({ fields: { deliveryTag } }) as Message // The driver reads no more.

/** Acknowledges a delivery, with `allUpTo` all before it as well. Throws where the channel is closed. */
export const ack = (channel: Channel, deliveryTag: number, allUpTo: boolean): void =>
  channel.ack(messageOf(deliveryTag), allUpTo)

/** Puts a delivery back into its queue. Throws where the channel is closed. */
export const requeue = (channel: Channel, deliveryTag: number, how: "Reject" | "Nack"): void =>
  how === "Reject" ? channel.reject(messageOf(deliveryTag), true) : channel.nack(messageOf(deliveryTag), false, true)

/** A digest that nobody can make two texts for, at a gigabyte a second. */
export const digest = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("base64")
}
