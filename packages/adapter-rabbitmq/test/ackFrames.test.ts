/** Acknowledgements as bytes: the driver's own, and only where the driver writes as the one that is known does. */
import * as fc from "fast-check"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { assert, describe, test } from "vitest"
import * as AckFrames from "../src/internal/ackFrames.ts"
import { ackEach, type Channel } from "../src/internal/client.ts"

const require = createRequire(import.meta.url)

/** The driver's encoder, which its package does not export. */
interface Definitions {
  readonly BasicAck: number
  readonly encodeMethod: (method: number, channel: number, fields: unknown) => Buffer
}
const driver = require(join(dirname(require.resolve("amqplib")), "lib", "defs.js")) as Definitions

const driverFrames = (channel: number, tags: ReadonlyArray<number>): Buffer =>
  Buffer.concat(
    tags.map((deliveryTag) => driver.encodeMethod(driver.BasicAck, channel, { deliveryTag, multiple: false }))
  )

const channels = fc.integer({ min: 1, max: 65_535 })
const tags = fc.array(fc.maxSafeInteger().map(Math.abs), { maxLength: 20 })

test("are byte for byte what the driver writes", () =>
  fc.assert(
    fc.property(channels, tags, (channel, each) =>
      assert.isTrue(AckFrames.make(channel, each).equals(driverFrames(channel, each)))
    ),
    { numRuns: 500 }
  ))

/** A channel that keeps what is written, in order. */
const channelOf = (change: (channel: Record<string, unknown>) => object = (channel) => channel) => {
  const written: Array<Buffer> = []
  const keep = (bytes: Buffer) => written.push(bytes)
  const ack = ({ fields: { deliveryTag } }: { readonly fields: { readonly deliveryTag: number } }): void =>
    void keep(driverFrames(7, [deliveryTag]))
  const channel = change({ ch: 7, ack, connection: { channels: { 7: { buffer: { write: keep } } } } })
  return { channel: channel as unknown as Channel, written: () => Buffer.concat(written), writes: () => written.length }
}

describe("each delivery is acknowledged once, in order", () => {
  test.each<[string, Parameters<typeof channelOf>[0], number]>([
    ["by the driver and one more write", undefined, 2],
    ["by the driver alone where it names no channel", (channel) => ({ ...channel, ch: undefined }), 4],
    ["by the driver alone where it has no such buffer", (channel) => ({ ...channel, connection: { channels: [] } }), 4],
    ["by the driver alone where it has no connection", (channel) => ({ ...channel, connection: undefined }), 4]
  ])("%s", (_, change, writes) => {
    const one = channelOf(change)
    ackEach(one.channel, [3, 9, 4, 2 ** 33])
    assert.isTrue(one.written().equals(driverFrames(7, [3, 9, 4, 2 ** 33])))
    assert.strictEqual(one.writes(), writes)
  })

  test("and a single one by the driver", () => {
    const one = channelOf()
    ackEach(one.channel, [3])
    assert.strictEqual(one.writes(), 1)
  })
})

test("on a closed channel nothing is written", () => {
  const one = channelOf((channel) => ({
    ...channel,
    ack: () => {
      throw new Error("Channel closed")
    }
  }))
  assert.throws(() => ackEach(one.channel, [1, 2, 3]), "Channel closed")
  assert.strictEqual(one.writes(), 0)
})
