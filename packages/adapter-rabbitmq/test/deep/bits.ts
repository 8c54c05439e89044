/** Foreign messages with every type and property, and their comparison byte by byte, by a client that knows no values. */
import { assert } from "vitest"
import * as Frames from "../frames.ts"

const { entry, join, long, short, u16, u32, u64, u8, value } = Frames

const bytes = (hex: string): Buffer => Buffer.from(hex, "hex")

const headers: ReadonlyArray<readonly [name: string, value: Buffer]> = [
  ["true", value("t", u8(1))],
  ["false", value("t", u8(0))],
  ["int8", value("b", u8(0x85))],
  ["uint8", value("B", u8(200))],
  ["int16 that fits into 8 bits", value("s", u16(5))],
  ["uint16", value("u", u16(50_000))],
  ["int32 that fits into 8 bits", value("I", u32(5))],
  ["uint32", value("i", u32(4_000_000_000))],
  ["int64 that fits into 8 bits", value("l", u64(5n))],
  ["int64 beyond 2^53", value("l", u64(9_007_199_254_740_993n))],
  ["the least int64", value("l", u64(-(2n ** 63n)))],
  ["float 1.0", value("f", bytes("3f800000"))],
  ["float 0.1", value("f", bytes("3dcccccd"))],
  ["double 1.0", value("d", bytes("3ff0000000000000"))],
  ["double -0.0", value("d", bytes("8000000000000000"))],
  ["decimal", value("D", u8(2), u32(314))],
  ["decimal below 0", value("D", u8(2), u32(0xffff_fff0))],
  ["timestamp", value("T", u64(1_700_000_000n))],
  ["the last timestamp", value("T", u64(2n ** 64n - 1n))],
  ["byte array", value("x", long(bytes("00ff80")))],
  ["text", value("S", long("grüße"))],
  ["text that is none", value("S", long(bytes("fffe41c3")))],
  ["void", value("V")],
  [
    "table",
    value("F", long(join(entry("!", value("S", long("net"))), entry("n", value("l", u64(9_007_199_254_740_993n))))))
  ],
  [
    "array",
    value("A", long(join(value("l", u64(1n)), value("d", bytes("3ff0000000000000")), value("A", long(value("V"))))))
  ],
  ["empty table", value("F", long(""))],
  ["empty array", value("A", long(""))],
  ["content-type", value("S", long("header/type"))],
  ["__proto__", value("S", long("a name of JavaScript"))],
  ["!", value("S", long("double"))],
  ["", value("S", long("no name"))]
]

/** Every property, and what no copy keeps, of the user of this address. */
export const full = (url: string): Frames.Parts => ({
  contentType: short("property/type"),
  contentEncoding: short("gzip"),
  headers: join(...headers.map(([name, tagged]) => entry(name, tagged))),
  deliveryMode: u8(1),
  priority: u8(3),
  correlationId: short("correlation ü"),
  replyTo: short("amq.rabbitmq.reply-to.x"),
  expiration: short("3600000"),
  messageId: short(`${"i".repeat(254)}1`),
  timestamp: u64(1_700_000_001n),
  type: short("order.created"),
  userId: short(decodeURIComponent(new URL(url).username || "guest")),
  appId: short("shop")
})

/** Nothing but one short header, without which a table could be too short for a trick. */
export const bare: Frames.Parts = { headers: entry("", value("V")) }

/** Bytes of every value. */
export const body = Buffer.from(Array.from({ length: 300 }, (_, at) => at % 256))

const ours = /^(requeue|x-|CC$|BCC$)/
/** Servers from 4.0 on put headers in an order of their own. */
const tableOf = ({ headers = Buffer.alloc(0) }: Frames.Parts) =>
  [...Frames.entries(headers)]
    .filter(([name]) => !ours.test(name))
    .map(([name, one]) => `${name}: ${one.toString("hex")}`)
    .toSorted()

/** Insists that a message has what it had at first; a copy has neither expiration nor user id. */
export const compare = (copy: Frames.Content, original: Frames.Parts, isCopy: boolean): void => {
  const { headers: _, ...properties } = Frames.parts(copy.properties)
  const { expiration, headers: __, userId, ...kept } = original
  const expected = isCopy ? kept : { ...kept, ...(expiration && { expiration }), ...(userId && { userId }) }
  assert.deepStrictEqual(tableOf(Frames.parts(copy.properties)), tableOf(original))
  // A copy is stored unless its producer has asked for less.
  const { deliveryMode = u8(2), ...others } = properties
  assert.deepStrictEqual({ ...others, deliveryMode }, { deliveryMode: u8(2), ...expected })
  assert.isTrue(copy.body.equals(body))
}
