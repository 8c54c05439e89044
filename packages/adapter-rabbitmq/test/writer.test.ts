import { Metadata, Outgoing } from "@requeue/core/port"
import * as fc from "fast-check"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { type ConfirmChannel, type Publication, publish } from "../src/internal/client.ts"
import * as FirstSend from "../src/internal/publish/firstSend.ts"
import { direct, toPublication } from "../src/internal/publish/toPublication.ts"
import { isOfHeaders, ofEncoding, tooLarge } from "../src/internal/toBrokerError.ts"
import * as Writer from "../src/internal/publish/writer.ts"

const require = createRequire(import.meta.url)
const driver = (file: string): Readonly<Record<string, any>> =>
  require(join(dirname(require.resolve("amqplib")), "lib", file))

/** The smallest at which frames are put together here, and not by the driver. */
const frameMax = 32_768

/** Counts what a channel publishes; a trial of what the driver writes is made with another one. */
const counting = (channel: Record<string, any>, published: Array<unknown>): void => {
  const before = channel["publish"]
  channel["publish"] = function (this: unknown, ...given: Array<any>) {
    if (this === channel) published.push(given[3].messageId)
    return before.apply(this, given)
  }
}

/** The driver's own channel number 1 on a connection of which the socket is a list. */
const open = () => {
  const written: Array<Buffer> = []
  const connection = new (driver("connection.js")["Connection"])(new (require("node:stream").PassThrough)())
  const channel = new (driver("channel_model.js")["ConfirmChannel"])(connection)
  connection.frameMax = frameMax
  connection.channels[1] = {
    channel,
    buffer: { write: (frames: Buffer) => written.push(Buffer.from(frames)), end: () => {} }
  }
  channel.ch = 1
  return {
    channel: channel as ConfirmChannel & Record<string, any>,
    connection,
    written,
    bytes: () => Buffer.concat(written)
  }
}

const anyText = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.constantFrom(
    "",
    "\ud800",
    "é",
    "a".repeat(255),
    "é".repeat(128),
    "__proto__",
    "1",
    Metadata.header,
    "requeue-copy"
  )
)

const short = fc.oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.constantFrom("", "k".repeat(255)))

const bodies = fc
  .oneof(fc.nat(300), fc.constantFrom(0, frameMax - 9, frameMax - 8, frameMax - 7, 2 * (frameMax - 8), 8192, 8193))
  .map((size) => new Uint8Array(size).map((_, at) => (at * 31) & 255))

const typed: fc.Arbitrary<unknown> = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 2 },
    fc.string(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
    fc.nat().map((value) => ({ "!": "timestamp", value })),
    fc.array(tie("any"), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 5 }), tie("any"), { maxKeys: 3, noNullPrototype: true })
  )
})).any

const properties = fc.record(
  {
    mandatory: fc.boolean(),
    contentType: short,
    contentEncoding: short,
    deliveryMode: fc.constantFrom(1, 2),
    priority: fc.nat(255),
    correlationId: short,
    replyTo: short,
    expiration: fc.nat().map(String),
    type: short,
    userId: short,
    appId: short
  },
  { requiredKeys: [] }
)

/** Shapes that come again and again, beside those that come once. */
const shapes = fc.sample(
  fc.record({ shape: fc.constant(undefined), options: properties, names: fc.uniqueArray(short, { maxLength: 4 }) }),
  20
)
const shaped = fc
  .oneof(
    fc.constantFrom(...shapes.map((one) => ({ ...one, shape: one }))),
    fc.record({ options: properties, names: fc.uniqueArray(anyText, { maxLength: 4 }), shape: fc.constant({}) })
  )
  .chain(({ names, options, shape }) =>
    fc
      .record({
        values: fc.tuple(...names.map(() => anyText)),
        route: fc.tuple(anyText, anyText),
        content: bodies,
        id: anyText,
        at: fc.nat(2 ** 31)
      })
      .map(
        ({ at, content, id, route: [exchange, routingKey], values }): Publication => ({
          queue: "q",
          exchange,
          routingKey,
          content,
          options: { ...options, messageId: id, timestamp: at },
          headers: Object.fromEntries(names.map((name, index) => [name, values[index]!])),
          kept: [],
          // The property asks for a new object each time where the shape comes once.
          shape: shapes.includes(shape as never) ? shape : { ...shape }
        })
      )
  )

const messages = fc
  .record({
    queue: fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
    id: fc.oneof(fc.uuid(), fc.string({ unit: "grapheme", minLength: 1, maxLength: 200 })),
    body: bodies,
    headers: fc.oneof(
      fc.constant(Object.freeze({ "content-type": "application/json" })),
      fc.dictionary(fc.oneof(anyText, fc.constantFrom("content-type", "content-encoding")), anyText, {
        maxKeys: 4,
        noNullPrototype: true
      })
    ),
    now: fc.oneof(fc.nat(2 ** 43), fc.constantFrom(-1, 0, 1e300))
  })
  .map(({ now, ...message }) => Outgoing.make({ ...message, delay: 0 }, now))

const toFirst = FirstSend.make()
const publications = fc.oneof(
  messages.map((message) => toFirst(message, "copy.1")),
  shaped,
  fc
    .record({ publication: shaped, typed: fc.dictionary(short, typed, { maxKeys: 3, noNullPrototype: true }) })
    .map(({ publication, typed }): Publication => ({ ...publication, shape: undefined, typed })),
  fc.record({ publication: shaped, name: short, value: anyText }).map(({ name, publication, value }): Publication => {
    const bytes = Buffer.from(`${String.fromCharCode(Buffer.byteLength(name))}${name}V`, "latin1")
    return {
      ...publication,
      shape: undefined,
      headers: { own: value },
      kept: name === "" || Buffer.byteLength(name) !== name.length ? [] : [{ name, bytes }]
    }
  })
)

const attempt = (write: () => void): unknown => {
  try {
    return write()
  } catch (error) {
    return String(error)
  }
}

describe("frames", () => {
  it(
    "are byte by byte those of the driver, in the same order, whatever is published",
    { timeout: 60_000 },
    async () => {
      const [ours, theirs] = [open(), open()]
      const writer = Writer.make(ours.channel)
      const [done, ends] = [(error: unknown) => ends.push(error), [] as Array<unknown>]
      const [driven, all]: [Array<unknown>, Array<unknown>] = [[], []]
      counting(ours.channel, driven)
      counting(theirs.channel, all)
      await fc.assert(
        fc.asyncProperty(fc.array(publications, { minLength: 1, maxLength: 10 }), async (all) => {
          const how = all.map((each) => [
            attempt(() => writer.write(each, done)),
            attempt(() => publish(theirs.channel, each, done))
          ])
          await setImmediate()
          for (const [our, their] of how) assert.strictEqual(our, their)
          assert.isTrue(ours.bytes().equals(theirs.bytes()))
          assert.strictEqual(ours.channel["unconfirmed"].length, theirs.channel["unconfirmed"].length)
          assert.isTrue(ours.channel["unconfirmed"].every((one: unknown) => one === done))
          for (const { channel, written } of [ours, theirs]) written.length = channel["unconfirmed"].length = 0
        }),
        { numRuns: 300 }
      )
      assert.isAbove(all.length, 1000)
      // Enough of it was not the driver's to write, whatever shapes were drawn.
      assert.isBelow(driven.length, 0.9 * all.length)
    }
  )

  it("of a first send are those of any other publication of the message", () => {
    fc.assert(
      fc.property(messages, (message) => {
        const { shape: _, ...first } = toFirst(message, "c")
        const any = toPublication(message, direct(message.queue), { copy: "c", isDelay: () => false })
        const [one, other] = [first, any].map(({ content, options, ...rest }) => ({
          ...rest,
          content: Buffer.from(content),
          options: JSON.parse(JSON.stringify(options))
        }))
        assert.deepStrictEqual(one, other)
        assert.deepStrictEqual(Object.keys(first.headers), Object.keys(any.headers))
      })
    )
  })
})

const publication = (id: string, more: Partial<Publication> = {}): Publication => ({
  ...toFirst(Outgoing.make({ queue: "q", id, body: new Uint8Array(10), headers: {}, delay: 0 }, 0), `copy ${id}`),
  ...more
})

const ids = ["a", "b", "c"]

describe("headers that need a larger frame than the connection takes", () => {
  const header = (size: number) => ({ [Metadata.header]: "m", "requeue-copy": "c", h: "h".repeat(size) })
  const larger: ReadonlyArray<readonly [name: string, publication: (size: number) => Publication]> = [
    ["of a first send", (size) => publication("a", { headers: header(size), shape: {} })],
    ["of text", (size) => publication("a", { headers: header(size), shape: undefined })],
    ["with types", (size) => publication("a", { typed: { h: Buffer.alloc(size) }, shape: undefined })],
    [
      "of a copy",
      (size) => {
        const bytes = Buffer.concat([Buffer.from("\x01hS\0\0", "latin1"), Buffer.from([size >> 8, size & 255])])
        const kept = [{ name: "h", bytes: Buffer.concat([bytes, Buffer.alloc(size)]) }]
        return publication("a", { kept, shape: undefined })
      }
    ]
  ]
  // The smallest of RabbitMQ 4, one that a chunk fits into, and one for which a chunk is too small.
  const limits = [8192, frameMax, 50_000]

  it.each(larger.flatMap(([name, make]) => limits.map((limit) => [name, limit, make] as const)))(
    "are refused before anything is written: %s, frame_max %i",
    async (_, limit, make) => {
      const { bytes, channel, connection } = open()
      connection.frameMax = limit
      const writer = Writer.make(channel)
      const refusal = (size: number) => attempt(() => writer.write(make(size), () => {}))
      assert.match(String(refusal(limit)), new RegExp(`Encoded field table: .* frame_max .* is ${limit}$`))
      assert.deepStrictEqual([bytes().length, channel["unconfirmed"].length], [0, 0])
      let size = limit
      while (refusal(size) !== undefined) size--
      assert.isAbove(size, limit - 300, "the largest that fits is written")
      await setImmediate()
      const frames = bytes()
      const second = 8 + frames.readUInt32BE(3)
      assert.strictEqual(8 + frames.readUInt32BE(second + 3), limit)
      assert.strictEqual(channel["unconfirmed"].length, 1)
    }
  )

  it("fail as too large, with the limit, so that a smaller copy applies", () => {
    const error = ofEncoding(new RangeError(tooLarge(9000, 8192)), "orders")
    assert.deepStrictEqual([error.reason, isOfHeaders(error)], ["BodyTooLarge", true])
    assert.include(error.message, "9000 bytes, and frame_max of this connection is 8192")
  })
})

describe("a driver that is another one", () => {
  const others: Readonly<Record<string, (one: ReturnType<typeof open>) => void>> = {
    "encodes otherwise": ({ connection }) => {
      const { sendMessage } = connection
      connection.sendMessage = (...given: ReadonlyArray<unknown>) => {
        connection.channels[1].buffer.write(Buffer.from([8, 0, 0, 0, 0, 0, 0, 0xce]))
        return sendMessage.apply(connection, given)
      }
    },
    "keeps what is unconfirmed elsewhere": ({ channel }) => {
      const elsewhere: Array<unknown> = []
      channel["pushConfirmCallback"] = (done: unknown) => elsewhere.push(done)
    },
    "writes frames elsewhere": ({ connection, written }) => {
      const { channels } = connection
      connection.sendMessage = () => written.push(Buffer.from("frames"))
      connection.channels = { 1: { channel: channels[1].channel, socket: channels[1].buffer } }
    },
    "hides its connection": ({ channel, connection }) => {
      channel["publish"] = (_: string, key: string, content: Buffer) => {
        connection.channels[1].buffer.write(Buffer.from(key))
        return content.length > 0
      }
      Object.defineProperty(channel, "connection", { value: undefined })
    }
  }

  for (const [name, change] of Object.entries(others)) {
    it(`${name}: it writes all itself, each at once`, async () => {
      const one = open()
      change(one)
      const published: Array<unknown> = []
      counting(one.channel, published)
      const writer = Writer.make(one.channel)
      for (const id of ids) writer.write(publication(id), () => {})
      assert.deepStrictEqual(published, ids)
      const frames = one.written.length
      await setImmediate()
      assert.strictEqual(one.written.length, frames)
    })
  }
})

describe("a writer", () => {
  it("hands on all of one turn at once, and keeps its order with what the driver writes", async () => {
    const { bytes, channel, written } = open()
    const writer = Writer.make(channel)
    for (const id of ids) writer.write(publication(id), () => {})
    assert.deepStrictEqual(written, [])
    await setImmediate()
    assert.strictEqual(written.length, 1)
    writer.write(publication("d"), () => {})
    writer.write(publication("e", { shape: undefined }), () => {})
    writer.write(publication("f"), () => {})
    await setImmediate()
    const text = bytes().toString("latin1")
    assert.deepStrictEqual(
      [...text.matchAll(/copy (\w)/g)].map(([, id]) => id),
      [...ids, "d", "e", "f"]
    )
  })

  it("writes what was given, though it is changed later in the same turn", async () => {
    const { bytes, channel } = open()
    const content = Buffer.from("before")
    Writer.make(channel).write(publication("a", { content }), () => {})
    content.write("behind")
    await setImmediate()
    assert.include(bytes().toString("latin1"), "before")
  })

  it("writes nothing on a channel that has closed, and fails as the driver does", async () => {
    for (const closes of ["channel", "connection"] as const) {
      const { bytes, channel, connection } = open()
      const writer = Writer.make(channel)
      const ends: Array<unknown> = []
      writer.write(publication("a"), (error) => ends.push(error))
      if (closes === "channel") channel["toClosed"]()
      else connection.toClosed()
      assert.match(String(ends), /channel closed/)
      assert.throws(() => writer.write(publication("b"), () => {}), /closed/i)
      await setImmediate()
      assert.strictEqual(bytes().length, 0)
    }
  })
})
