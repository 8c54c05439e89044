/** The frames that a connection receives: counts them, and keeps the raw headers of messages. */
import * as FieldTable from "../fieldTable.ts"

interface Frame {
  readonly channel: number
  readonly id?: number
  readonly fields?: { headers?: unknown; table?: Buffer | undefined }
}

/** The part of a driver's connection that the driver's types lack: the channel limit, and how it parses frames. */
export interface Receiver {
  readonly channelMax: number
  /** Received bytes, from the start of the next frame. */
  rest: Buffer
  /** Parses the next frame; calls itself again after it has read more bytes. */
  recvFrame: () => false | Frame
}

/** The frame of a message's properties, by the number of its class. */
const propertiesFrame = 60
/** Bytes before the property flags: the header of every frame, then class, weight and body size. */
const beforeFlags = 7 + 12

/**
 * Returns the headers that the driver has read, plus a text header named `__proto__`. The driver assigns that one, so
 * it loses a text, and uses a table as the prototype of all headers.
 */
const whole = (headers: unknown, table: Buffer): unknown => {
  const text = FieldTable.textOf(table, "__proto__")
  return { ...Object(headers), ...(text === undefined ? {} : { ["__proto__"]: text }) }
}

/**
 * Keeps the raw headers of a message, whose frame starts these bytes, in addition to those that the driver has read.
 */
const keepTable = (fields: NonNullable<Frame["fields"]>, bytes: Buffer): void => {
  fields.table ??= FieldTable.headersOf(bytes, beforeFlags)
  if (fields.table?.includes("__proto__")) fields.headers = whole(fields.headers, fields.table)
}

/** The connection's own channel. */
const connectionChannel = 0

/** Keeps the raw headers of messages. Counts the frames on channels, which excludes heartbeats. */
export const watch = (connection: Receiver): (() => number) => {
  const receive = connection.recvFrame.bind(connection)
  let heard = 0
  connection.recvFrame = () => {
    const bytes = connection.rest
    const frame = receive()
    if (frame === false) return frame
    if (frame.channel !== connectionChannel) heard++
    // If the driver had to read more bytes, its nested call has found the frame in them.
    if (frame.id === propertiesFrame && frame.fields?.headers !== undefined) keepTable(frame.fields, bytes)
    return frame
  }
  return () => heard
}
