/** The only file that imports the driver: opening connections, and the shapes that the other files use. */
import { type Channel, type ConfirmChannel, connect as open, credentials, type ConsumeMessage } from "amqplib"
import type { Socket } from "node:net"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../RabbitMqOptions.ts"
import type { Address } from "./address.ts"

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
}

/** What is published, and on which way; the properties are the driver's options. */
export interface Publication {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Buffer
  readonly options: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, unknown>>
}

export interface Connection {
  /** For example `3.10.8`. */
  readonly version: string
  readonly channel: () => Promise<Channel>
  readonly confirmChannel: () => Promise<ConfirmChannel>
  /** Says good-bye; may never resolve on a dead link. */
  readonly close: () => Promise<void>
  /** Drops the socket. */
  readonly destroy: () => void
}

/** What a connection tells; `closed` comes once. */
export interface Listener {
  readonly closed: (error: unknown) => void
  readonly blocked: (reason: string) => void
  readonly unblocked: () => void
}

export const connect = async (
  settings: Settings,
  address: Address,
  role: string,
  on: Listener
): Promise<Connection> => {
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
          : credentials.plain(address.username, Redacted.value(address.password)),
      noDelay: true,
      keepAlive: true,
      timeout: settings.connectTimeout,
      clientProperties: { connection_name: `${settings.connectionName}:${role}` },
      ...(address.secure ? material : {}),
      ...(passphrase === undefined ? {} : { passphrase: Redacted.value(passphrase) })
    }
  )
  const { stream } = model.connection as unknown as { readonly stream: Socket }
  gather(stream)
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
    close: () => model.close(),
    destroy: () => stream.destroy()
  }
}

/**
 * Nothing waits on its way to the server: the socket has no delay, which would make timers tens of milliseconds late. But
 * then each write is a packet, and the driver writes each frame alone; what it writes in one go becomes one packet here.
 */
const gather = (stream: Socket): void => {
  const write = stream.write.bind(stream) as (...frame: ReadonlyArray<unknown>) => boolean
  const send = (): void => stream.uncork()
  stream.write = (...frame: ReadonlyArray<unknown>) => {
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(send)
    }
    return write(...frame)
  }
}

/** A channel's `error` without a listener ends the process; `close` follows it and is what the runtime listens to. */
const guard = <C extends Channel>(channel: C): C => {
  channel.on("error", () => {})
  return channel
}

/** Objects for headers, each for those of the same names. */
const layouts = new Map<string, Record<string, unknown>>()
const layoutLimit = 100

/**
 * The driver makes a prototype of the headers that it is given, and to make a new prototype for every message costs more
 * than to encode them. So what has the same names is put into the same object; the driver has read it when `publish`
 * returns.
 */
const laidOut = (headers: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  const names = JSON.stringify(Object.keys(headers))
  const known = layouts.get(names)
  if (known !== undefined) return Object.assign(known, headers)
  if (layouts.size < layoutLimit) layouts.set(names, { ...headers })
  return headers
}

/** Writes it; `done` hears `null` when it was confirmed. Throws where the channel is closed. */
export const publish = (
  channel: ConfirmChannel,
  { content, exchange, headers, options, routingKey }: Publication,
  done: (error: unknown) => void
): void => {
  channel.publish(exchange, routingKey, content, { ...options, headers: laidOut(headers) }, done)
}
