/**
 * Writes publications on a channel. Those of a known shape are put together from a {@link Template}, and all of one turn of the
 * event loop are handed to the driver at once, where it would hand on the frames of its own. Everything else is the driver's to
 * write, in the same order: what has no shape or no template, what is large, and all of it where the driver is not the one
 * that this file knows.
 */
import * as Client from "../client.ts"
import type { ConfirmChannel, Publication } from "../client.ts"
import { tooLarge } from "../toBrokerError.ts"
import * as Template from "./template.ts"

/** A channel's writer. */
export interface Writer {
  /** `done` is called with `null` when it is confirmed. Throws where the channel is closed, or it cannot be encoded. */
  readonly write: (publication: Publication, done: (error: unknown) => void) => void
}

/** The part that the driver's types lack: the way of a channel's frames to the socket. */
interface Inside {
  readonly ch: number
  readonly connection: Connection
  readonly sendMessage: unknown
  readonly pushConfirmCallback: (done: (error: unknown) => void) => void
}

interface Connection {
  readonly channels: { readonly [channel: number]: { readonly buffer: Waiting } }
  readonly stream: Taking & { readonly writableNeedDrain: boolean }
  readonly frameMax: number
  readonly sendMessage: unknown
  /** Whether a heartbeat can be saved. */
  sentSinceLastCheck: boolean
}

interface Taking {
  readonly write: (frames: Buffer) => unknown
}

/** The frames of a channel that wait for their turn to be written. */
interface Waiting extends Taking {
  readonly readableLength: number
  readonly writableLength: number
}

/** Bytes that are handed to the driver at once, at most, and the most of them that one publication has. */
const chunkSize = 32_768
const largest = chunkSize / 4

const newChunk = () => Buffer.allocUnsafeSlow(chunkSize) as Buffer as Template.Latin1 // Every Buffer has it.

/** Encodes a publication as the driver does it on this channel, and writes nothing. */
const encoder =
  (channel: ConfirmChannel) =>
  (publication: Publication): Buffer => {
    const { ch, connection } = channel as unknown as Inside // The trial that follows tells whether it is.
    const written: Array<Buffer> = []
    const unconfirmed: Array<unknown> = []
    const apart: unknown = Object.create(channel, {
      connection: {
        value: Object.create(connection, {
          channels: { value: { [ch]: { buffer: { write: (frames: Buffer) => written.push(frames) } } } },
          sentSinceLastCheck: { value: false, writable: true }
        })
      },
      unconfirmed: { value: unconfirmed }
    })
    const done = () => {}
    Client.publish(apart as ConfirmChannel, publication, done) // Its prototype is one.
    if (unconfirmed[0] !== done) throw new TypeError("the driver keeps what is unconfirmed in another way")
    return Buffer.concat(written)
  }

/** Bytes of a frame of properties but for its headers, at most: every text has 255 bytes. */
const propertiesSize = 3072

/** The most bytes that headers which are text can have, with their names and sizes; those that are kept have theirs. */
const headersLimit = ({ headers, kept }: Publication): number => {
  let size = 0
  for (const { bytes } of kept) size += bytes.length
  // A character has three bytes at most.
  for (const name in headers) size += 6 + 3 * (name.length + headers[name]!.length)
  return size
}

const empty = new Uint8Array(0)

/**
 * Refuses headers that are larger than a frame of the connection, as one that cannot be encoded. The server would close the
 * connection, with all that is unconfirmed on it. What has a shape fits into a chunk.
 */
const checker =
  (channel: ConfirmChannel, encode: ReturnType<typeof encoder>) =>
  (publication: Publication): void => {
    const { connection } = channel as unknown as { readonly connection?: Connection } // The driver's types lack it.
    const frameMax = connection?.frameMax
    if (frameMax === undefined || (publication.shape !== undefined && frameMax >= chunkSize)) return
    if (publication.typed === undefined && headersLimit(publication) + propertiesSize <= frameMax) return
    const size = headerFrameSize(encode, publication)
    if (size > frameMax) throw new RangeError(tooLarge(size, frameMax))
  }

/** The size of the frame of headers and properties; 0 where the driver is to say itself why it cannot write it. */
const headerFrameSize = (encode: ReturnType<typeof encoder>, publication: Publication): number => {
  try {
    const frames = encode({ ...publication, content: empty })
    const second = Template.frameOverhead + frames.readUInt32BE(3)
    return Template.frameOverhead + frames.readUInt32BE(second + 3)
  } catch {
    return 0
  }
}

/** A writer of nothing yet. */
export const make = (channel: ConfirmChannel): Writer => {
  const inside = channel as unknown as Inside // No template is made where it is not.
  const { connection, sendMessage } = inside
  const sendsOfConnection = connection?.sendMessage
  const encode = encoder(channel)
  const check = checker(channel, encode)
  const templates = new WeakMap<object, { readonly template: Template.Template | undefined }>()
  let chunk = newChunk()
  /** The part of the chunk that has been written, and the part of that which has been handed on. */
  let used = 0
  let handed = 0

  /** The driver puts other functions in the place of these when it closes. */
  const isOpen = (): boolean => inside.sendMessage === sendMessage && connection.sendMessage === sendsOfConnection

  const flush = (): void => {
    if (used === handed) return
    const frames = chunk.subarray(handed, used)
    handed = used
    if (!isOpen()) return
    connection.sentSinceLastCheck = true
    const { stream } = connection
    const { buffer } = connection.channels[inside.ch]!
    // Whole frames may go straight to the socket, unless others of the channel wait, or the socket is behind.
    const isFree = buffer.readableLength === 0 && buffer.writableLength === 0 && !stream.writableNeedDrain
    ;(isFree ? stream : buffer).write(frames)
  }

  const templateOf = (publication: Publication): Template.Template | undefined => {
    if (publication.shape === undefined) return undefined
    const known = templates.get(publication.shape)
    if (known !== undefined) return known.template
    const template = Template.make(publication, encode)
    templates.set(publication.shape, { template })
    return template
  }

  /** Puts frames into the chunk; false where they are the driver's to write. */
  const put = (publication: Publication): boolean => {
    const template = templateOf(publication)
    const { content } = publication
    if (
      template === undefined ||
      content.length > largest ||
      content.length > connection.frameMax - Template.frameOverhead
    )
      return false
    if (!isOpen()) return false
    let after = template.write(publication, chunk, used)
    if (after === -1 && used > chunkSize / 2) {
      // The rest of the chunk may be too small.
      flush()
      chunk = newChunk()
      used = handed = 0
      after = template.write(publication, chunk, used)
    }
    if (after === -1) return false
    if (used === handed) process.nextTick(flush)
    used = after
    return true
  }

  return {
    write: (publication, done) => {
      check(publication)
      if (put(publication)) return inside.pushConfirmCallback(done)
      flush()
      Client.publish(channel, publication, done)
    }
  }
}
