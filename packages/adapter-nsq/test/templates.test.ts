/** What is encoded in a quicker way is the same as what the ordinary encoders make of it, byte for byte. */
import { createRequire } from "node:module"
import { Metadata } from "@requeue/core/port"
import * as fc from "fast-check"
import { assert, describe, test } from "vitest"
import * as Commands from "../src/internal/publish/commands.ts"
import * as Wire from "../src/internal/wire.ts"

const numRuns = 1000

const optional = <A>(arbitrary: fc.Arbitrary<A>) => fc.option(arbitrary, { nil: undefined })

const time = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 8.64e15 }), weight: 6 },
  fc.constantFrom(-0, -1, 0.5, 8.64e15, 8.64e15 + 2, Number.MAX_VALUE, Number.NaN, Number.POSITIVE_INFINITY)
)

const id = fc.oneof(
  { arbitrary: fc.uuid(), weight: 3 },
  fc.string({ maxLength: 220 }),
  fc.string({ maxLength: 20, unit: "binary" }),
  fc.constantFrom("", '"', "\\", "\u007f", "\u0000", "é", "\ud800", " ", "a".repeat(200), "a".repeat(201), "</m>")
)

/** Most of them of messages that are sent for the first time. */
const metadata: fc.Arbitrary<Metadata.Metadata> = fc
  .record({
    id,
    firstPublished: time,
    others: fc.oneof(
      { arbitrary: fc.constant({}), weight: 4 },
      fc.record(
        {
          attempts: fc.nat(3),
          notBefore: time,
          redrives: fc.nat(2),
          operation: fc.constantFrom("redrive-1", "redrive-1:2", "?"),
          truncation: fc.constantFrom("history", "error-text", "error", "all"),
          isUndated: fc.constant(true as const),
          history: fc.array(fc.record({ attempt: fc.nat(9), at: time, error: fc.string(), delay: fc.nat(1000) }), {
            maxLength: 3
          })
        },
        { requiredKeys: [] }
      )
    )
  })
  .map(({ firstPublished, id, others }) => ({
    id,
    attempts: 0,
    notBefore: 0,
    firstPublished,
    redrives: 0,
    history: [],
    deadLetter: undefined,
    ...others
  }))

/** The envelope by the encoder of metadata and by `JSON.stringify` alone. */
const ordinary = ({ body, deferred, headers, metadata, nonce }: Wire.Envelope): Buffer => {
  const h = Object.keys(headers).length === 0 ? undefined : headers
  const rest = JSON.stringify({ h, d: deferred, n: nonce }).slice(1)
  const json = Buffer.from(`{"m":${Metadata.encode(metadata)}${rest === "}" ? "" : ","}${rest}`)
  const head = Buffer.from([0x00, 0x52, 0x4b, 0x01, json.length >> 8, json.length & 0xff])
  return Buffer.concat([head, json, body])
}

describe("the same bytes as by the ordinary encoder has", () => {
  test("an envelope", () =>
    fc.assert(
      fc.property(
        fc.record({
          metadata,
          headers: fc.dictionary(fc.string(), fc.string({ unit: "binary" }), { maxKeys: 3 }),
          deferred: optional(fc.nat()),
          nonce: optional(fc.string()),
          body: fc.uint8Array({ maxLength: 50 })
        }),
        (envelope) => assert.deepStrictEqual(Wire.encode(envelope), ordinary(envelope))
      ),
      { numRuns }
    ))

  test("a command", () => {
    const driver = createRequire(import.meta.resolve("nsqjs"))("./wire.js") as {
      readonly pub: (topic: string, body: Buffer) => Buffer
      readonly dpub: (topic: string, body: Buffer, millis: number) => Buffer
      readonly mpub: (topic: string, bodies: ReadonlyArray<Buffer>) => Buffer
    }
    const payload = fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes))
    fc.assert(
      fc.property(
        fc.stringMatching(/^[.a-zA-Z0-9_-]{1,54}(#ephemeral)?$/),
        fc.array(payload, { maxLength: 6 }),
        fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3_600_000 })),
        (topic, payloads, defer) => {
          const [first] = payloads
          const isOne = payloads.length === 1
          const made = Commands.publish(topic, payloads, isOne ? defer : 0)
          const expected = !isOne
            ? driver.mpub(topic, payloads)
            : defer === 0
              ? driver.pub(topic, first!)
              : driver.dpub(topic, first!, defer)
          assert.deepStrictEqual(made, expected)
        }
      ),
      { numRuns }
    )
  })
})
