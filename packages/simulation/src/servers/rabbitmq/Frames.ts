/** The sizes of frames, and the frames that a client writes itself. https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf */
import type { Properties } from "./Message.ts"

/** Bytes of a frame around its payload. */
const overhead = 8

/** Properties with a size of their own. All others are text after its size. */
const sizes: Readonly<Record<string, number>> = { deliveryMode: 1, priority: 1, timestamp: 8 }

/** Bytes of the frame that has the headers and properties. */
export const headerSize = (table: Buffer, properties: Properties): number => {
  const values = Object.entries(properties).map(([name, value]) =>
    value === undefined ? 0 : (sizes[name] ?? 1 + Buffer.byteLength(String(value)))
  )
  return overhead + 14 + 4 + table.length + values.reduce((sum, size) => sum + size, 0)
}

/** Frames of the sizes of a publication without content. Only their sizes are right. */
export const ofSizes = (...sizesOfFrames: ReadonlyArray<number>): Buffer =>
  Buffer.concat(
    sizesOfFrames.map((size) => {
      const frame = Buffer.alloc(size)
      frame.writeUInt32BE(size - overhead, 3)
      return frame
    })
  )

/** Bytes of a frame that acks one delivery. */
const ackSize = 21

/** Reads the delivery tags of frames that ack one delivery each. */
export const ackedTags = (frames: Buffer): ReadonlyArray<number> =>
  Array.from({ length: frames.length / ackSize }, (_, index) => Number(frames.readBigUInt64BE(index * ackSize + 11)))
