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

/**
 * Bytes of the largest frame of headers and properties that the driver can write: it encodes tables of 64 KiB at most, and each
 * property has 255 bytes at most.
 */
const largestHeaders = 65_536 + 3072

/** The bytes of the frame of headers and properties; 0 where the driver cannot encode them, which it reports itself. */
const headerFrameSize = (encode: ReturnType<typeof encoder>, publication: Publication): number => {
  try {
    const frames = encode({ ...publication, content: new Uint8Array(0) })
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
  const frameMax = connection?.frameMax ?? Number.POSITIVE_INFINITY
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
    // Else a frame that fits into a chunk may be larger than the connection takes.
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

  /** Refuses headers that need a larger frame than the connection takes: the server would close it, for all that share it. */
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
