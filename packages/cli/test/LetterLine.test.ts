/** Letters that are written as lines and read again are the same, whatever is in them. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Delay } from "@requeue/core"
import { Metadata, type Outgoing } from "@requeue/core/port"
import { DeadLetters, LetterLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom("\n", "\ufeff{}", "\u2028", "__proto__", "")
)
const count = fc.nat({ max: Metadata.countLimit })
const time = fc.integer({ min: 0, max: 8.64e15 })

const body = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  text.map((each) => Uint8Array.from(Buffer.from(each))),
  fc.json().map((each) => Uint8Array.from(Buffer.from(each)))
)

const headers = fc.array(fc.tuple(text, text), { maxLength: 4 }).map((entries) => Object.fromEntries(entries))

const deadLetter = fc.record({
  queue: text,
  attempts: count,
  reason: fc.constantFrom(...Metadata.reasons),
  at: time,
  error: fc.record({ name: text, message: text })
})

const metadata: fc.Arbitrary<Metadata.Metadata> = fc
  .record({
    id: fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
    attempts: count,
    notBefore: fc.constant(0),
    firstPublished: time,
    redrives: count,
    history: fc.array(fc.record({ attempt: count, at: time, error: text, delay: fc.nat({ max: Delay.max }) }), {
      maxLength: Metadata.historyLimit
    }),
    deadLetter: fc.option(deadLetter, { nil: undefined }),
    truncation: fc.option(fc.constantFrom(...Metadata.truncations), { nil: undefined })
  })
  .map(({ truncation, ...rest }) => (truncation === undefined ? rest : { ...rest, truncation }))

const letter: fc.Arbitrary<Outgoing.Outgoing> = fc.record({
  queue: fc.constant("orders.dlq"),
  body,
  headers,
  delay: fc.constant(0),
  metadata
})

const read = (queue: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* (yield* DeadLetters.make(queue)).read()
      const found: Array<DeadLetters.DeadLetter> = []
      for (let page = yield* next; page !== undefined; page = yield* next) found.push(...page)
      return found
    })
  )

const plain = (letters: ReadonlyArray<DeadLetters.DeadLetter>) =>
  letters.map(({ body, headers, metadata }) => ({ body: [...body], headers: Object.entries(headers), metadata }))

const parsed = (line: string, to?: string): Outgoing.Outgoing => {
  const found = LetterLine.parse(line, to)
  if ("detail" in found) throw new Error(found.detail)
  return found
}

describe("a line", () => {
  it("makes the same letter again, with hostile bodies, headers and errors", async () => {
    const law = fc.asyncProperty(fc.array(letter, { minLength: 1, maxLength: 5 }), (letters) =>
      Effect.runPromise(
        Effect.provide(
          Effect.gen(function* () {
            const broker = yield* Broker.Broker
            yield* broker.publish(letters)
            const before = yield* read("orders.dlq")
            const lines = before.map((each) => LetterLine.format("orders.dlq", each))
            assert.isTrue(lines.every((line) => !line.includes("\n")))
            yield* broker.publish(lines.map((line) => parsed(line, "attic")))
            assert.deepStrictEqual(plain(yield* read("attic")), plain(before))
            assert.deepStrictEqual(
              lines.map((line) => parsed(line).queue),
              letters.map(({ queue }) => queue)
            )
          }),
          MemoryBroker.layer()
        )
      )
    )
    await fc.assert(law)
  })

  it("have their keys, and a letter that is made again has left the order of its key", () => {
    const letter = { body: new Uint8Array(), headers: {}, key: "k", metadata: Metadata.make("m", 0), origin: undefined }
    const parsed = LetterLine.parse(LetterLine.format("q.dlq", letter))
    assert.deepStrictEqual("place" in parsed && parsed.place, { key: "k" })
  })

  it.each<readonly [string, string]>([
    ["no JSON", "the line is not a JSON object"],
    ["[1]", "the line is not a JSON object"],
    ['{"queue":"q","redacted":true}', "parts of the letter were hidden when it was exported"],
    ["{}", "queue must be the name of a queue"],
    ['{"queue":"q"}', 'body must be text, or {"base64": …}'],
    ['{"queue":"q","body":{"base64":"no base64!"}}', 'body must be text, or {"base64": …}'],
    ['{"queue":"q","body":"","headers":{"a":1}}', "headers must be an object of texts"],
    ['{"queue":"q","body":"","headers":{},"key":5}', "key must be text, got number"],
    ['{"queue":"q","body":"","headers":{},"key":""}', "key must have 1 to 200 characters, got 0"],
    [
      '{"queue":"q","body":"","headers":{},"key":"a\\u0000"}',
      "key must have no control characters and no broken surrogates"
    ],
    ...[
      String.raw`"\ud800","headers":{}`,
      String.raw`"","headers":{"a":"x\udfff"}`,
      String.raw`"","headers":{"\ud83d":""}`
    ].map(
      (rest) => [`{"queue":"q","body":${rest}}`, "body and headers must not have half of a surrogate pair"] as const
    ),
    [
      '{"queue":"q","body":"","headers":{},"metadata":{"v":2}}',
      'metadata must be what an export has written, with "v":1, "id", "a" and "t0"'
    ]
  ])("%s is refused", (line, detail) => {
    assert.deepStrictEqual(LetterLine.parse(line), { detail })
  })
})
