import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Delay from "../../src/message/Delay.ts"
import * as Metadata from "../../src/message/Metadata.ts"

const bytes = (text: string) => new TextEncoder().encode(text).length

/** Any text in any script, but no control characters: JSON takes six bytes for each. */
const printable = (maxLength: number) =>
  fc.string({ unit: "binary", minLength: 1, maxLength }).map((text) =>
    text
      .replaceAll(/\p{Cc}/gu, "_")
      .slice(0, maxLength)
      .toWellFormed()
  )

/** As many bytes as fit into so many characters. */
const widest = "\u20ac".repeat(Metadata.idLimit)

const count = fc.nat()
const attempt = fc.record({
  attempt: count,
  at: count,
  error: printable(Metadata.errorLimit),
  delay: fc.nat({ max: Delay.max })
})
const deadLetter: fc.Arbitrary<Metadata.DeadLetter> = fc.record({
  queue: fc.oneof(printable(Metadata.idLimit), fc.constant(widest)),
  attempts: count,
  reason: fc.constantFrom("retries-exhausted", "permanent", "undecodable", "too-old"),
  at: count,
  error: fc.record({ name: printable(300), message: printable(600) })
})
const unnamed: fc.Arbitrary<Metadata.Metadata> = fc.record({
  id: fc.oneof(printable(Metadata.idLimit), fc.constant(widest)),
  attempts: count,
  notBefore: count,
  firstPublished: count,
  redrives: count,
  history: fc.array(attempt, { maxLength: Metadata.historyLimit }),
  deadLetter: fc.option(deadLetter, { nil: undefined })
})
const operation = fc.oneof(fc.stringMatching(/^[\w.:-]{1,64}$/), fc.constant("w".repeat(64)))
const metadata = fc.oneof(
  unnamed,
  fc.tuple(unnamed, operation).map(([self, operation]): Metadata.Metadata => ({ ...self, operation }))
)

describe("encode and decode", () => {
  it("fit the budget; what is lost is the oldest history, then the end of the error's message", () =>
    fc.assert(
      fc.property(metadata, (self) => {
        const text = Metadata.encode(self)
        assert.isAtMost(bytes(text), Metadata.budget)
        const copy = Metadata.decode(text)!
        const kept = copy.history.length
        assert.deepStrictEqual(copy.history, kept === 0 ? [] : self.history.slice(-kept))
        assert.deepStrictEqual(
          { ...copy, history: [], deadLetter: undefined },
          { ...self, history: [], deadLetter: undefined }
        )
        if (self.deadLetter === undefined) return assert.isUndefined(copy.deadLetter)
        const { error, ...rest } = copy.deadLetter!
        assert.deepStrictEqual({ ...rest, error: self.deadLetter.error }, self.deadLetter)
        assert.isTrue(self.deadLetter.error.name.startsWith(error.name))
        assert.isTrue(self.deadLetter.error.message.startsWith(error.message))
        assert.isAtLeast(error.name.length, Math.min(64, self.deadLetter.error.name.length))
      })
    ))

  describe("of a stack trace", () => {
    const frames = (count: number, file: string) =>
      Array.from({ length: count }, (_, line) => `    at handle (/app/src/${file}.ts:${line + 1}:1)`)
    const stack = [...frames(40, "orders"), "caused by: Error: no", ...frames(40, "database")].join("\n")
    const dead = (stack: string | undefined, history: ReadonlyArray<Metadata.Attempt> = []): Metadata.Metadata => ({
      ...Metadata.make("a", 0),
      history,
      deadLetter: {
        queue: "q",
        attempts: 1,
        reason: "permanent",
        at: 0,
        error: { name: "Error", message: "no", ...(stack === undefined ? {} : { stack }) }
      }
    })
    const kept = (self: Metadata.Metadata) => Metadata.decode(Metadata.encode(self))!

    it("keep one that fits", () => {
      const short = frames(5, "orders").join("\n")
      assert.deepStrictEqual(kept(dead(short)), dead(short))
    })

    it("keep the first frames of each error where there is no room for all, to the last byte", () => {
      const some = kept(dead(stack)).deadLetter!.error.stack!
      const at = some.indexOf("caused by: Error: no")
      assert.deepStrictEqual(
        [some.slice(0, at), some.slice(at)].map((part) => part.match(/\w+\.ts:1:1/)?.[0]),
        ["orders.ts:1:1", "database.ts:1:1"]
      )
      assert.include(some, "\n    …\n")
      for (let length = 1; length < 3000; length++) {
        assert.isAtMost(
          bytes(Metadata.encode(dead(`    at ${'\u20ac"'.repeat(length)}`.slice(0, length)))),
          Metadata.budget
        )
      }
    })

    it("shorten it before they lose anything else", () => {
      const history = Array.from({ length: 10 }, (_, n) => ({
        attempt: n + 1,
        at: n,
        error: "x".repeat(150),
        delay: 0
      }))
      const { deadLetter, ...rest } = kept(dead(stack, history))
      assert.deepStrictEqual(rest.history, history)
      assert.isBelow(deadLetter!.error.stack?.length ?? 0, 300)
      const long = history.map((each) => ({ ...each, error: "x".repeat(250) }))
      assert.deepStrictEqual(kept(dead(stack, long)), kept(dead(undefined, long)))
    })

    it("lose it with the history where the broker refuses a larger copy", () => {
      for (const cut of Metadata.truncations)
        assert.notInclude(Metadata.encode(Metadata.reduce(dead(stack), cut)), "    at")
    })

    it("read letters of programs that do not know it, and those of a foreign one that writes anything there", () => {
      const { s: _, ...known } = JSON.parse(Metadata.encode(dead(stack))).dl
      for (const s of [undefined, 7, null, {}, ""]) {
        const text = JSON.stringify({ v: 1, id: "a", a: 0, t0: 0, dl: { ...known, s } })
        assert.deepStrictEqual(Metadata.decode(text), dead(undefined))
      }
    })
  })

  it("lose nothing that fits", () =>
    fc.assert(
      fc.property(
        metadata.map((self) => ({
          ...self,
          id: self.id.slice(0, 20),
          history: self.history.slice(0, 1),
          deadLetter: undefined
        })),
        (self) => assert.deepStrictEqual(Metadata.decode(Metadata.encode(self)), self)
      )
    ))

  it("a whole history of the longest errors: the newest are kept", () => {
    const history = Array.from({ length: 10 }, (_, i) => ({ attempt: i + 1, at: i, error: "e".repeat(256), delay: 0 }))
    const copy = Metadata.decode(Metadata.encode({ ...Metadata.make("id", 1), history }))!
    assert.deepStrictEqual(copy.history, history.slice(-copy.history.length))
    assert.isAtLeast(copy.history.length, 6)
  })

  it("the dead letter is kept, its message shortened, when id, queue and name take all room", () => {
    const error = { name: "\u20ac".repeat(400), message: "\u20ac".repeat(400) }
    const self: Metadata.Metadata = {
      ...Metadata.make(widest, 1),
      history: [{ attempt: 1, at: 1, error: "e", delay: 1 }],
      deadLetter: { queue: widest, attempts: 4, reason: "permanent", at: 9, error }
    }
    const copy = Metadata.decode(Metadata.encode(self))!
    assert.deepStrictEqual(copy.history, [])
    assert.deepStrictEqual(copy.deadLetter!.error, {
      name: error.name.slice(0, 64),
      message: error.message.slice(0, 128)
    })
  })

  it("is compact: absent fields take no room", () =>
    assert.strictEqual(Metadata.encode(Metadata.make("a", 5)), '{"v":1,"id":"a","a":0,"t0":5}'))
})

describe("remember", () => {
  it("keeps the last ten, and the start of each error", () => {
    const attempts = Array.from({ length: 15 }, (_, i) => ({
      attempt: i + 1,
      at: i,
      error: "e".repeat(i * 40),
      delay: i
    }))
    const history = attempts.reduce<ReadonlyArray<Metadata.Attempt>>(Metadata.remember, [])
    assert.deepStrictEqual(
      history.map(({ attempt }) => attempt),
      [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    )
    assert.isTrue(history.every(({ attempt, error }) => error.length === Math.min(256, (attempt - 1) * 40)))
  })
})
