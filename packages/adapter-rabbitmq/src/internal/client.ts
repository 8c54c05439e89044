/**
 * The only file that imports the driver and Node's own modules: it opens connections, and defines the types that the
 * other files use.
 */
import { TlsOptions } from "@requeue/kit"
import type * as Amqp from "amqplib"
import { createHash } from "node:crypto"
import type { EventEmitter } from "node:events"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import * as Context from "effect/Context"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../RabbitMqOptions.ts"
import type { Address } from "./address.ts"
import * as AckFrames from "./ackFrames.ts"
import * as ReceivedFrames from "./connect/receivedFrames.ts"
import { verifyPassive } from "./connect/verifyPassive.ts"
import type { Account } from "./connect/credentials.ts"
import * as FieldTable from "./fieldTable.ts"
import * as WrittenHeaders from "./publish/writtenHeaders.ts"

/** The members of the driver's channel that the adapter uses. */
export interface Channel
  extends
    Pick<EventEmitter, "on" | "once" | "prependListener">,
    Pick<
      Amqp.Channel,
      | "ack"
      | "ackAll"
      | "assertExchange"
      | "assertQueue"
      | "bindQueue"
      | "cancel"
      | "checkExchange"
      | "checkQueue"
      | "close"
      | "consume"
      | "deleteExchange"
      | "deleteQueue"
      | "get"
      | "nack"
      | "nackAll"
      | "prefetch"
      | "purgeQueue"
      | "reject"
      | "unbindQueue"
    > {}

/** A channel whose publications the server confirms. */
export interface ConfirmChannel extends Channel, Pick<Amqp.ConfirmChannel, "publish"> {}

/** A message from the broker. */
export type Incoming = Pick<Amqp.ConsumeMessage, "content"> & {
  readonly fields: Pick<Amqp.ConsumeMessage["fields"], "deliveryTag" | "redelivered" | "exchange" | "routingKey">
  readonly properties: Properties
}

/** Where a message was published. */
export interface Published {
  readonly exchange: string
  readonly routingKey: string
}

/** The AMQP properties that are read or written. */
export interface Properties {
  /** The user's own exchange that the message was published to. Default: none, it was sent directly to its queue. */
  readonly published?: Published | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  /** The received headers in AMQP's encoding. */
  readonly table?: Buffer | undefined
  readonly messageId?: unknown
  readonly timestamp?: unknown
  readonly contentType?: unknown
  readonly contentEncoding?: unknown
  readonly priority?: unknown
  readonly correlationId?: unknown
  readonly replyTo?: unknown
  readonly type?: unknown
  readonly appId?: unknown
  readonly deliveryMode?: unknown
  readonly expiration?: unknown
  readonly userId?: unknown
}

/** A message to publish, and its route; `options` are the AMQP properties, with the driver's names. */
export interface Publication {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly options: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  /** Headers of a new message that override {@link headers} and need not be text. Default: none. */
  readonly typed?: Readonly<Record<string, unknown>> | undefined
  /** The remedy when the server finds no queue for the message. Default: to declare the queue. */
  readonly unrouted?: string | undefined
  /** The received headers of the message that this copies. {@link headers} has none of their names. */
  readonly kept: ReadonlyArray<FieldTable.Entry>
  /**
   * The same object for publications that differ only in route, values of {@link headers}, message id, timestamp and
   * content. Such a publication has neither {@link kept} nor {@link typed}. Default: none.
   */
  readonly shape?: object | undefined
}

/** An open connection of the driver. */
export interface DriverConnection {
  /** The server's version, such as `3.10.8`. */
  readonly version: string
  /** A number that changes whenever the server sends something other than a heartbeat. */
  readonly heard: () => number
  readonly channel: () => Promise<Channel>
  /** The largest number of open channels. */
  readonly channelMax: number
  readonly confirmChannel: () => Promise<ConfirmChannel>
  /** Sends the server a new password or token; may never resolve on a dead connection. */
  readonly updateSecret: (secret: Redacted.Redacted) => Promise<void>
  /** Closes the connection, with the server's answer; may never resolve on a dead connection. */
  readonly close: () => Promise<void>
  /** Drops the socket. The reason appears in the errors of all running requests. Default: this client has closed it. */
  readonly destroy: (because?: string) => void
}

/** Callbacks for the events of a connection. */
export interface Listener {
  /** Ends the attempt to connect, and its socket. The driver's own time limit restarts with each byte received. */
  readonly signal: AbortSignal
  /** Called once. */
  readonly closed: (error: unknown) => void
  /** Called when the server blocks publishers because of a memory or disk alarm. */
  readonly blocked: (reason: string) => void
  readonly unblocked: () => void
}

/** The response of the management interface to a request. */
export type Page = Pick<Response, "json" | "ok" | "status">

/** A driver: connections to the server, and pages of its management interface. */
export interface Driver {
  /** Opens a connection; the name that the server shows for it ends with `role`. */
  readonly connect: (
    settings: Settings,
    address: Address,
    account: Account,
    role: string,
    on: Listener
  ) => Promise<DriverConnection>
  /** Requests a page of the management interface. */
  readonly get: (
    url: URL,
    request: { readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal }
  ) => Promise<Page>
}

/** Milliseconds in which the peer must end its half of a socket before the socket is dropped. */
const endTimeout = 2_000

const connect: Driver["connect"] = async (settings, address, account, role, on) => {
  const { auth, tls } = settings
  // Importing the adapter does not load the driver, because a program may import several adapters and use one.
  const { connect: open, credentials } = await import("amqplib")
  // The driver passes this to the socket; its types lack it.
  const limit = { signal: on.signal }
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
      ...limit,
      clientProperties: { connection_name: `${settings.connectionName}:${role}` },
      ...TlsOptions.toNode(tls, readFileSync)
    }
  )
  const { stream } = model.connection as unknown as { readonly stream: Socket } // The driver's types lack its socket.
  coalesceWrites(stream)
  const receiver = model.connection as unknown as ReceivedFrames.Receiver // The driver's types lack these.
  const heard = ReceivedFrames.watch(receiver)
  let failure: unknown
  // Attached before the first await: an `error` event without a listener ends the process.
  model.on("error", (error) => (failure = error))
  model.once("close", (error) => {
    // The driver has ended the socket. A dead peer never answers that, and the socket would keep the process alive.
    stream.setTimeout(endTimeout, () => stream.destroy())
    on.closed(failure ?? error)
  })
  model.on("blocked", on.blocked)
  model.on("unblocked", on.unblocked)
  const version: unknown = model.connection.serverProperties["version"]
  return {
    version: typeof version === "string" ? version : "0.0",
    heard,
    channel: () => model.createChannel().then(guard),
    channelMax: receiver.channelMax,
    confirmChannel: () => model.createConfirmChannel().then(guard),
    updateSecret: (secret) => model.updateSecret(Buffer.from(Redacted.value(secret)), "renewed before it ends"),
    close: () => model.close(),
    // Without an error the driver would not notice, and its heartbeats would keep the process alive for two more
    // intervals.
    destroy: (because = "closed by this client") => void stream.destroy(new Error(because))
  }
}

/**
 * Combines all frames that are written in one turn of the event loop into one packet. The driver writes each frame
 * separately, and with `noDelay` each write is a packet. Without `noDelay` frames would wait for tens of milliseconds.
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

/**
 * Adds an `error` listener, because an `error` without one would end the process. The adapter listens to `close`, which
 * follows.
 */
const guard = <C extends Channel>(channel: C): C => {
  channel.on("error", () => {})
  verifyPassive(channel)
  return channel
}

/** The driver of the brokers that are made in this context. Default: amqplib, and `fetch` for the management interface. */
export const Driver: Context.Reference<Driver> = Context.Reference("@requeue/adapter-rabbitmq/Driver", {
  defaultValue: (): Driver => ({ connect, get: (url, request) => fetch(url, request) })
})

/** The driver accepts only Buffers. */
const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Writes a publication. Calls `done` with `null` once it is confirmed. Throws if the channel is closed. */
export const publish = (
  channel: ConfirmChannel,
  { content, exchange, headers, kept, options, routingKey, typed }: Publication,
  done: (error: unknown) => void
): void => {
  const written =
    kept.length === 0
      ? WrittenHeaders.reuse(typed === undefined ? headers : { ...headers, ...typed })
      : WrittenHeaders.asItIs(FieldTable.make(kept, headers))
  channel.publish(exchange, routingKey, bufferOf(content), { ...options, headers: written }, done)
}

const messageOf = (deliveryTag: number): Amqp.Message => ({ fields: { deliveryTag } }) as Amqp.Message // The driver reads no more.

/** Acks a delivery, and with `allUpTo` all earlier ones. Throws if the channel is closed. */
export const ack = (channel: Channel, deliveryTag: number, allUpTo: boolean): void =>
  channel.ack(messageOf(deliveryTag), allUpTo)

/** Acks deliveries one by one. Throws if the channel is closed. */
export const ackEach = (channel: Channel, [first, ...others]: readonly [number, ...ReadonlyArray<number>]): void => {
  // The driver throws if the channel is closed.
  ack(channel, first, false)
  if (!AckFrames.write(channel, others)) for (const tag of others) ack(channel, tag, false)
}

/** Requeues a delivery, and with `NackAll` all earlier ones. Throws if the channel is closed. */
export const requeue = (channel: Channel, deliveryTag: number, how: "Reject" | "Nack" | "NackAll"): void =>
  how === "Reject"
    ? channel.reject(messageOf(deliveryTag), true)
    : channel.nack(messageOf(deliveryTag), how === "NackAll", true)

/** A cryptographic digest, computed at a gigabyte per second. */
export const digest = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("base64")
}
