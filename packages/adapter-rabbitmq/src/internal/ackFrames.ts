/**
 * Encodes the frames of acks that one frame cannot cover. While one delivery waits for its copy, all later ones are
 * acked one by one, and for each the driver would make a frame and pass it through three streams.
 * https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf
 */

/** Bytes of a frame: type, channel, size; class, method, tag, flags; end. */
const size = 7 + 13 + 1

/** The part of a driver's channel that writes frames; the driver's types lack all of it. */
interface Writing {
  readonly ch?: unknown
  readonly connection?: { readonly channels?: Readonly<Record<number, { readonly buffer?: { write?: unknown } }>> }
}

/** The ack frame of tag 0 on channel 0, and the offsets of channel and tag. */
const frame = Uint8Array.of(1, 0, 0, 0, 0, 0, 13, 0, 60, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xce)
const channelAt = 1
const tagAt = 11

/** Returns the frames that ack exactly these deliveries of a channel. */
export const make = (channel: number, tags: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.allocUnsafe(size * tags.length)
  // A DataView writes a number in a third of the time of Buffer's methods, and in a fifth before they are compiled.
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
 * Acks each of these deliveries of an open channel, if the driver has the internals that this module knows. Otherwise
 * it writes nothing and returns false.
 */
export const write = (channel: object, tags: ReadonlyArray<number>): boolean => {
  const { ch, connection }: Writing = channel
  if (typeof ch !== "number") return false
  const buffer = connection?.channels?.[ch]?.buffer
  if (typeof buffer?.write !== "function") return false
  if (tags.length > 0) buffer.write(make(ch, tags))
  return true
}
