/**
 * The only file that imports the driver, and what is Node's own: it opens connections, and names the types that the other
 * files use.
 */
import { TlsOptions } from "@requeue/kit"
import type { Channel, ConfirmChannel, ConsumeMessage, Message } from "amqplib"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import * as Redacted from "effect/Redacted"
import type { Settings } from "../RabbitMqOptions.ts"
import type { Address } from "./address.ts"
import * as AckFrames from "./ackFrames.ts"
import { verifyPassive } from "./connect/verifyPassive.ts"
import type { Account } from "./connect/credentials.ts"
import * as FieldTable from "./fieldTable.ts"

export type { Channel, ConfirmChannel }

/** A message as it came from the broker. */
export type Incoming = Pick<ConsumeMessage, "content"> & {
  readonly fields: Pick<ConsumeMessage["fields"], "deliveryTag" | "redelivered" | "exchange" | "routingKey">
  readonly properties: Properties
}

/** Where a message was published. */
export interface Published {
  readonly exchange: string
  readonly routingKey: string
}

/** The AMQP properties that are read or written. */
export interface Properties {
  /** The user's own exchange that the message came through. Default: none, it was sent to its queue. */
  readonly published?: Published | undefined
  readonly headers?: Readonly<Record<string, unknown>> | undefined
  /** The headers as they came, in AMQP's encoding. */
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

/** A message to be published, and its route; `options` are the AMQP properties, as the driver names them. */
export interface Publication {
  readonly queue: string
  readonly exchange: string
  readonly routingKey: string
  readonly content: Uint8Array
  readonly options: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  /** Headers of a new message that beat {@link headers} and need not be text. Default: none. */
  readonly typed?: Readonly<Record<string, unknown>> | undefined
  /** The remedy where the server finds no queue for it. Default: to declare the queue. */
  readonly unrouted?: string | undefined
  /** Headers of the message that this is a copy of, as they came. {@link headers} has none of their names. */
  readonly kept: ReadonlyArray<FieldTable.Entry>
  /**
   * The same object for publications that differ in nothing but their route, the values of {@link headers}, message id,
   * timestamp and content. Such a publication has neither {@link kept} nor {@link typed}. Default: nothing is known of it.
   */
  readonly shape?: object | undefined
}

/** An open connection of the driver. */
export interface DriverConnection {
  /** The server's version, for example `3.10.8`. */
  readonly version: string
  /** Another number whenever the server has sent something that is no heartbeat. */
  readonly heard: () => number
  readonly channel: () => Promise<Channel>
  /** The most channels that may be open at the same time. */
  readonly channelMax: number
  /** A channel that a consumer keeps. Fails where it would take the last one, which is for declarations. */
  readonly consumerChannel: () => Promise<Channel>
  readonly confirmChannel: () => Promise<ConfirmChannel>
  /** Tells the server another password or token; may never resolve on a dead connection. */
  readonly updateSecret: (secret: Redacted.Redacted) => Promise<void>
  /** Closes it, with the server's answer; may never resolve on a dead connection. */
  readonly close: () => Promise<void>
  /** Drops the socket. The reason is in the error of everything that is under way. Default: this client has closed it. */
  readonly destroy: (because?: string) => void
}

/** Callbacks for a connection's events. */
export interface Listener {
  /** Ends the attempt to connect, and its socket. The driver's own limit begins again with each byte that comes. */
  readonly signal: AbortSignal
  /** Called once. */
  readonly closed: (error: unknown) => void
  /** Called when the server blocks publishers, because of an alarm of memory or disk. */
  readonly blocked: (reason: string) => void
  readonly unblocked: () => void
}

/** Milliseconds in which the other side ends its half of a socket too, before it is dropped. */
const endTimeout = 2_000

/** Opens a connection; `role` is the end of the name that the server shows for it. */
export const connect = async (
  settings: Settings,
  address: Address,
  account: Account,
  role: string,
  on: Listener
): Promise<DriverConnection> => {
  const { auth, tls } = settings
  // An import of the adapter, which may only be one of several to choose from, does not load the driver.
  const { connect: open, credentials } = await import("amqplib")
  // The driver passes it to the socket, and its types lack it.
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
  const receiver = model.connection as unknown as Receiver // The driver's types lack these.
  const heard = watch(receiver)
  const { channelMax } = receiver
  /** Channels that consumers have. */
  let consumers = 0
  let failure: unknown
  let closed = false
  // Attached before anything is awaited: an `error` without a listener ends the process.
  model.on("error", (error) => (failure = error))
  model.on("close", (error) => {
    if (closed) return
    closed = true
    // The driver has ended the socket. A peer that is away never answers that, and the socket would keep the process.
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
    channelMax,
    consumerChannel: async () => {
      if (consumers >= channelMax - 1) throw new Error(noneLeft(channelMax))
      consumers++
      const left = () => void consumers--
      try {
        const channel = await model.createChannel()
        channel.once("close", left)
        return guard(channel)
      } catch (error) {
        left()
        throw error
      }
    },
    confirmChannel: () => model.createConfirmChannel().then(guard),
    updateSecret: (secret) => model.updateSecret(Buffer.from(Redacted.value(secret)), "renewed before it ends"),
    close: () => model.close(),
    // Without an error the driver does not see it: its heartbeats would keep the process for two intervals more.
    destroy: (because = "closed by this client") => void stream.destroy(new Error(because))
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

const noneLeft = (channelMax: number): string =>
  `No channels left for a consumer: the connection allows ${channelMax} channels (channel_max), each consumer has one, ` +
  "and declarations need the last"

interface Frame {
  readonly channel: number
  readonly id?: number
  readonly fields?: { headers?: unknown; table?: Buffer | undefined }
}

/** The part of a driver's connection that the driver's types lack: its limit, and how it takes frames from the bytes that have come. */
interface Receiver {
  readonly channelMax: number
  /** Bytes that have come, from the beginning of the next frame on. */
  rest: Buffer
  /** Takes the next frame; calls itself again when it has read more bytes. */
  recvFrame: () => false | Frame
}

/** The frame of a message's properties, by the number of its class, which begins it. */
const propertiesFrame = 60
/** Bytes before the flags of the properties: those of any frame, then class, weight and the size of the body. */
const beforeFlags = 7 + 12

/**
 * The headers that the driver has read, with one named `__proto__`, where it is text. The driver assigns it, and so loses a
 * text, and takes a table for the prototype of all headers.
 */
const whole = (headers: unknown, table: Buffer): unknown => {
  const text = FieldTable.textOf(table, "__proto__")
  return { ...Object(headers), ...(text === undefined ? {} : { ["__proto__"]: text }) }
}

/** Keeps the headers of a message, whose frame begins these bytes, as they came, beside those that the driver has read. */
const keepTable = (fields: NonNullable<Frame["fields"]>, bytes: Buffer): void => {
  fields.table ??= FieldTable.headersOf(bytes, beforeFlags)
  if (fields.table?.includes("__proto__")) fields.headers = whole(fields.headers, fields.table)
}

/** The channel that belongs to the connection itself. */
const connectionChannel = 0

/** Keeps the headers of messages, and counts the frames that have come on channels, which no heartbeat does. */
const watch = (connection: Receiver): (() => number) => {
  const receive = connection.recvFrame.bind(connection)
  let heard = 0
  connection.recvFrame = () => {
    const bytes = connection.rest
    const frame = receive()
    if (frame === false) return frame
    if (frame.channel !== connectionChannel) heard++
    // Where it has read more bytes, the call for these has found the frame in them.
    if (frame.id === propertiesFrame && frame.fields?.headers !== undefined) keepTable(frame.fields, bytes)
    return frame
  }
  return () => heard
}

/** An `error` without a listener would end the process. The adapter listens to `close`, which follows it. */
const guard = <C extends Channel>(channel: C): C => {
  channel.on("error", () => {})
  verifyPassive(channel)
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

/** The bytes that the driver writes before the content of a byte array without a name; then follows its size. */
const nameless = [0, "x".charCodeAt(0)] as const
const namelessSize = nameless.length + 4

/** One object for all tables, since the driver uses it as a prototype as well. */
const wholeTable: Record<string, unknown> = {}

/**
 * Headers by which the driver writes a whole table as it is. They are a byte array without a name, whose content the
 * driver lets it write by itself, and then the bytes before are written as well. Should another version of the driver
 * write anything else there, nothing is sent.
 */
const asItIs = (table: Buffer): Readonly<Record<string, unknown>> => {
  const content = table.subarray(namelessSize)
  content.copy = (target, at = 0) => {
    const start = at - namelessSize
    if (nameless.some((byte, index) => target[start + index] !== byte))
      throw new TypeError("the driver writes byte arrays in another way")
    return table.copy(target, start)
  }
  wholeTable[""] = content
  return wholeTable
}

/** The driver takes no other arrays. */
const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Writes a publication. `done` is called with `null` when it is confirmed. Throws where the channel is closed. */
export const publish = (
  channel: ConfirmChannel,
  { content, exchange, headers, kept, options, routingKey, typed }: Publication,
  done: (error: unknown) => void
): void => {
  const written =
    kept.length === 0
      ? reuse(typed === undefined ? headers : { ...headers, ...typed })
      : asItIs(FieldTable.make(kept, headers))
  channel.publish(exchange, routingKey, bufferOf(content), { ...options, headers: written }, done)
}

const messageOf = (deliveryTag: number): Message => ({ fields: { deliveryTag } }) as Message // The driver reads no more.

/** Acknowledges a delivery, with `allUpTo` all before it as well. Throws where the channel is closed. */
export const ack = (channel: Channel, deliveryTag: number, allUpTo: boolean): void =>
  channel.ack(messageOf(deliveryTag), allUpTo)

/** Acknowledges deliveries one by one. Throws where the channel is closed. */
export const ackEach = (channel: Channel, [first, ...others]: readonly [number, ...ReadonlyArray<number>]): void => {
  // The driver tells whether the channel is open.
  ack(channel, first, false)
  if (!AckFrames.write(channel, others)) for (const tag of others) ack(channel, tag, false)
}

/** Puts a delivery back into its queue, `NackAll` those before it as well. Throws where the channel is closed. */
export const requeue = (channel: Channel, deliveryTag: number, how: "Reject" | "Nack" | "NackAll"): void =>
  how === "Reject"
    ? channel.reject(messageOf(deliveryTag), true)
    : channel.nack(messageOf(deliveryTag), how === "NackAll", true)

/** A digest that nobody can make two texts for, at a gigabyte a second. */
export const digest = (...parts: ReadonlyArray<string | Uint8Array>): string => {
  const hash = createHash("sha256")
  for (const part of parts) hash.update(part)
  return hash.digest("base64")
}
