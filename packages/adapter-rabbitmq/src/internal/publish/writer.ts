/**
 * Writes publications on a channel. It builds those of a known shape from a {@link Template} and passes all of one turn of the
 * event loop to the driver together. The driver writes all others, in the same order: publications without a shape or a template,
 * large ones, and all of them if the driver's internals are not those that this file knows.
 */
import * as Client from "../client.ts"
import type { ConfirmChannel, Publication } from "../client.ts"
import { tooLarge } from "../toBrokerError.ts"
import * as Template from "./template.ts"

/** A channel's writer. */
export interface Writer {
  /** Calls `done` with `null` when the server has confirmed it. Throws if the channel is closed or the encoding fails. */
  readonly write: (publication: Publication, done: (error: unknown) => void) => void
}

/** Members that the driver's types lack: how the frames of a channel reach the socket. */
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
  /** Whether a heartbeat can be skipped. */
  sentSinceLastCheck: boolean
}

interface Taking {
  readonly write: (frames: Buffer) => unknown
}

/** The frames of a channel that are not written yet. */
interface Waiting extends Taking {
  readonly readableLength: number
  readonly writableLength: number
}

/** The most bytes that the driver receives at once, and the most bytes of one publication among them. */
const chunkSize = 32_768
const largest = chunkSize / 4

const newChunk = () => Buffer.allocUnsafeSlow(chunkSize) as Buffer as Template.Latin1 // Every Buffer has it.

/** Encodes a publication as the driver does on this channel, without writing it. */
const encoder =
  (channel: ConfirmChannel) =>
  (publication: Publication): Buffer => {
    const { ch, connection } = channel as unknown as Inside // The trial below proves it.
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
    if (unconfirmed[0] !== done) throw new TypeError("the driver stores unconfirmed messages in another way")
    return Buffer.concat(written)
  }

/** The largest frame of headers and properties that the driver can write: tables have 64 KiB at most, properties 255 bytes. */
const largestHeaders = 65_536 + 3072

/** The bytes of the frame of headers and properties; 0 if the driver cannot encode them, which it reports itself. */
const headerFrameSize = (encode: ReturnType<typeof encoder>, publication: Publication): number => {
  try {
    const frames = encode({ ...publication, content: new Uint8Array(0) })
    const second = Template.frameOverhead + frames.readUInt32BE(3)
    return Template.frameOverhead + frames.readUInt32BE(second + 3)
  } catch {
    return 0
  }
}

/** Writes the publications of one channel. */
export const make = (channel: ConfirmChannel): Writer => {
  const inside = channel as unknown as Inside // No template is made where it is not.
  const { connection, sendMessage } = inside
  const sendsOfConnection = connection?.sendMessage
  const encode = encoder(channel)
  const frameMax = connection?.frameMax ?? Number.POSITIVE_INFINITY
  const templates = new WeakMap<object, { readonly template: Template.Template | undefined }>()
  let chunk = newChunk()
  /** How many bytes of the chunk are filled, and how many of these the driver has. */
  let used = 0
  let handed = 0

  /** The driver replaces these functions when it closes. */
  const isOpen = (): boolean => inside.sendMessage === sendMessage && connection.sendMessage === sendsOfConnection

  const flush = (): void => {
    if (used === handed) return
    const frames = chunk.subarray(handed, used)
    handed = used
    if (!isOpen()) return
    connection.sentSinceLastCheck = true
    const { stream } = connection
    const { buffer } = connection.channels[inside.ch]!
    // Whole frames go straight to the socket, unless other frames of the channel wait or the socket is full.
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

  /** Puts frames into the chunk; false if the driver must write them. */
  const put = (publication: Publication): boolean => {
    // A frame that fits into a chunk may still be too large for the connection.
    if (frameMax < chunkSize) return false
    const template = templateOf(publication)
    const { content } = publication
    if (template === undefined || content.length > largest) return false
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

  /** Refuses headers that are too large for a frame of the connection, because the server would close the connection. */
  const check = (publication: Publication): void => {
    if (frameMax >= largestHeaders) return
    const size = headerFrameSize(encode, publication)
    if (size > frameMax) throw new RangeError(tooLarge(size, frameMax))
  }

  return {
    write: (publication, done) => {
      if (put(publication)) return inside.pushConfirmCallback(done)
      check(publication)
      flush()
      Client.publish(channel, publication, done)
    }
  }
}
