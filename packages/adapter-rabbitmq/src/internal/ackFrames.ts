/**
 * Acknowledgements that no frame can cover together, as the bytes of all their frames. Beside one delivery that waits for its copy,
 * all others are acknowledged one by one, and for each the driver makes a frame and passes it through three streams.
 * https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf
 */

/** Bytes of a frame: type, channel, size; class, method, tag, flags; end. */
const size = 7 + 13 + 1

/** The part of a driver's channel by which it writes frames; its types lack all of it. */
interface Writing {
  readonly ch?: unknown
  readonly connection?: { readonly channels?: Readonly<Record<number, { readonly buffer?: { write?: unknown } }>> }
}

/** The frame of a tag of 0 on channel 0, and where these two are written. */
const frame = Uint8Array.of(1, 0, 0, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xce)
const channelAt = 1
const tagAt = 11

/** The frames that acknowledge each of these deliveries of a channel, and no others. */
export const make = (channel: number, tags: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.allocUnsafe(size * tags.length)
  // A view writes a number in a third of the time of a buffer's own functions, and in a fifth before these are compiled.
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let at = 0
  for (const tag of tags) {
    bytes.set(frame, at)
    view.setUint16(at + channelAt, channel)
    view.setUint32(at + tagAt, Math.floor(tag / 2 ** 32))
    view.setUint32(at + tagAt + 4, tag % 2 ** 32)
    at += size
  }
  return bytes
}

/**
 * Acknowledges each of these deliveries of an open channel, where the driver writes the frames of channels as the one that is known
 * does. Else nothing is written, and the answer is false.
 */
export const write = (channel: object, tags: ReadonlyArray<number>): boolean => {
  const { ch, connection }: Writing = channel
  if (typeof ch !== "number") return false
  const buffer = connection?.channels?.[ch]?.buffer
  if (typeof buffer?.write !== "function") return false
  if (tags.length > 0) buffer.write(make(ch, tags))
  return true
}
