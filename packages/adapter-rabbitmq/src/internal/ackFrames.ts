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

/** The frames that acknowledge each of these deliveries of a channel, and no others. */
export const make = (channel: number, tags: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.allocUnsafe(size * tags.length)
  let at = 0
  for (const tag of tags) {
    at = bytes.writeUInt8(1, at)
    at = bytes.writeUInt16BE(channel, at)
    at = bytes.writeUInt32BE(13, at)
    at = bytes.writeUInt16BE(60, at)
    at = bytes.writeUInt16BE(80, at)
    at = bytes.writeUInt32BE(Math.floor(tag / 2 ** 32), at)
    at = bytes.writeUInt32BE(tag % 2 ** 32, at)
    at = bytes.writeUInt8(0, at)
    at = bytes.writeUInt8(0xce, at)
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
