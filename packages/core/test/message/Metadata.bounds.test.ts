import { assert, describe, it, vi } from "@effect/vitest"
import * as fc from "fast-check"
import * as Delay from "../../src/message/Delay.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as Outgoing from "../../src/message/Outgoing.ts"

const runs = { numRuns: 300 }
const bytes = (text: string) => new TextEncoder().encode(text).length
const isWhole = (n: number) => Number.isSafeInteger(n) && n >= 0 && !Object.is(n, -0)

/** Any number that JSON can carry, and those that it cannot. */
const number = fc.oneof(
  fc.double(),
  fc.nat(),
  fc.maxSafeNat(),
  fc.constantFrom(0.5, -0, -1, 1e300, Number.MAX_VALUE, Number.NaN, Number.POSITIVE_INFINITY)
)
const anything = fc.oneof(fc.jsonValue(), number, fc.string({ unit: "binary", maxLength: 3000 }))
const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "binary", minLength: 500, maxLength: 3000 }))
const stack = fc.oneof(
  anything,
  fc
    .array(
      fc.oneof(
        text,
        text.map((line) => `    at ${line}`)
      ),
      { maxLength: 30 }
    )
    .map((lines) => lines.join("\n"))
)
const shaped = fc.record(
  {
    v: fc.constant(1),
    id: fc.oneof({ weight: 9, arbitrary: fc.string({ unit: "binary", minLength: 1 }) }, { weight: 1, arbitrary: text }),
    a: fc.oneof(fc.nat(), anything),
    t0: fc.oneof(fc.nat(), anything),
    nb: anything,
    rd: anything,
    op: fc.oneof(fc.stringMatching(/^[\w.:-]{1,64}$/), anything),
    h: fc.oneof(fc.array(fc.tuple(number, number, text, number), { maxLength: 30 }), anything),
    dl: fc.oneof(
      fc.record(
        { q: text, a: anything, r: fc.constantFrom(...Metadata.reasons), t: anything, n: text, m: text, s: stack },
        { requiredKeys: ["q", "a", "r", "t", "n", "m"] }
      ),
      anything
    )
  },
  { requiredKeys: ["v", "id", "a", "t0"] }
)

/** The counts and times of metadata. */
const numbersOf = ({ attempts, deadLetter, firstPublished, history, notBefore, redrives }: Metadata.Metadata) => ({
  counts: [attempts, redrives, deadLetter?.attempts ?? 0, ...history.map(({ attempt }) => attempt)],
  times: [firstPublished, notBefore, deadLetter?.at ?? 0, ...history.flatMap(({ at, delay }) => [at, delay])]
})

const assertBounded = (metadata: Metadata.Metadata) => {
  const { counts, times } = numbersOf(metadata)
  assert.isTrue(counts.every((n) => isWhole(n) && n <= Metadata.countLimit))
  assert.isTrue(times.every((n) => isWhole(n) && !Number.isNaN(new Date(n).getTime())))
  assert.isAtMost(metadata.history.length, Metadata.historyLimit)
  assert.isTrue(metadata.history.every(({ error }) => error.length <= Metadata.errorLimit))
  assert.isAtMost(metadata.id.length, Metadata.idLimit)
  const encoded = Metadata.encode(metadata)
  assert.isAtMost(bytes(encoded), Metadata.budget)
  const again = Metadata.decode(encoded)
  assert.deepStrictEqual(
    { ...again, history: [], deadLetter: undefined },
    { ...metadata, history: [], deadLetter: undefined }
  )
  assert.strictEqual(Metadata.encode(again!), encoded)
}

describe("what a foreign sender wrote is bounded", () => {
  it("as parsed JSON", () =>
    fc.assert(
      fc.property(fc.oneof(shaped, anything), (json) => {
        const metadata = Metadata.fromJson(json)
        if (metadata !== undefined) assertBounded(metadata)
      }),
      runs
    ))

  it("as text, and as any bytes", () => {
    const anyBytes = fc.uint8Array({ maxLength: 3000 }).map((bytes) => new TextDecoder().decode(bytes))
    const texts = fc.oneof(
      shaped.map((value) => JSON.stringify(value)),
      fc.json(),
      anyBytes
    )
    fc.assert(
      fc.property(texts, (text) => {
        const metadata = Metadata.decode(text)
        if (metadata !== undefined) assertBounded(metadata)
      }),
      runs
    )
  })

  it("and so is every copy of its message", () =>
    fc.assert(
      fc.property(shaped, fc.double(), (json, attempts) => {
        const metadata = Metadata.fromJson(json)
        if (metadata === undefined) return
        const delivery = { body: new Uint8Array(), headers: {}, attempts, metadata, receipt: undefined }
        const error = { name: "E".repeat(5000), message: "m".repeat(5000) }
        const copies = [
          Outgoing.retry(delivery, { _tag: "Retry", delay: 5, error }, "q", 1e12),
          Outgoing.hop(delivery, { delay: 5 }, "q", 1e12),
          Outgoing.deadLetter(delivery, { _tag: "DeadLetter", reason: "permanent", queue: "q.dlq", error }, "q", 1e12),
          Outgoing.redrive(delivery, "q")
        ]
        for (const copy of copies) assertBounded(Metadata.decode(Metadata.encode(copy.metadata))!)
      })
    ))

  it("cuts the stack trace of a foreign dead letter, however long it is", () => {
    const s = `    at pay (/app/pay.ts:1:1)${"\n    at handle (/app/handle.ts:1:1)".repeat(10_000)}`
    const metadata = Metadata.fromJson({ v: 1, id: "a", a: 0, t0: 5, dl: { q: "q", r: "permanent", s } })
    const stack = metadata?.deadLetter?.error.stack ?? ""
    assert.match(stack, /^ {4}at pay /)
    assert.isAtMost(stack.length, Metadata.budget)
  })

  it("a count that is no whole number makes a foreign message; one that is too high is cut", () => {
    const decode = (fields: object) => Metadata.fromJson({ v: 1, id: "a", a: 0, t0: 5, ...fields })
    assert.isUndefined(decode({ a: 0.5 }))
    assert.isUndefined(decode({ t0: 5.5 }))
    assert.isUndefined(decode({ id: "a".repeat(Metadata.idLimit + 1) }))
    assert.strictEqual(decode({ a: 1e300 })!.attempts, Metadata.countLimit)
    assert.strictEqual(decode({ rd: 0.5 })!.redrives, 0)
    assert.strictEqual(decode({ nb: 0.5 })!.notBefore, 0)
    assert.strictEqual(decode({ nb: 1e300 })!.notBefore, 8.64e15)
  })

  it("a time that a broker or a foreign sender gives is made one", () => {
    const times = [Number.NaN, -1, 0.5, 1.8e22, Number.POSITIVE_INFINITY].map((t) => Metadata.make("a", t, t))
    assert.deepStrictEqual(
      times.map(({ firstPublished }) => firstPublished),
      [0, 0, 1, 8.64e15, 8.64e15]
    )
    times.forEach(assertBounded)
  })

  it("encode writes whole numbers, whatever it is given", () =>
    fc.assert(
      fc.property(number, number, number, (attempts, at, redrives) => {
        const history = [{ attempt: attempts, at, error: "e", delay: at }]
        const given = { ...Metadata.make("a", at, at), attempts, redrives, history }
        assertBounded(Metadata.decode(Metadata.encode(given))!)
      })
    ))

  it("a dead letter that no budget holds is left out, not cut", () => {
    const error = { name: "E", message: "m" }
    const deadLetter = { queue: "\u0001".repeat(400), attempts: 1, reason: "permanent", at: 1, error } as const
    const encoded = Metadata.encode({ ...Metadata.make("a", 5), deadLetter })
    assert.deepStrictEqual(Metadata.decode(encoded), Metadata.make("a", 5))
  })
})

describe("work is bounded, too", () => {
  /** A history in which every look at an entry is counted. */
  const counted = (length: number) => {
    let looks = 0
    const entries = Array.from({ length }, () => [1, 2, "e".repeat(1000), 3])
    const history = new Proxy(entries, {
      get: (target, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) looks++
        return Reflect.get(target, key) as unknown
      }
    })
    return { history, looks: () => looks }
  }

  it("a history of any length costs as much as one of ten", () => {
    const cost = (length: number) => {
      const { history, looks } = counted(length)
      const stringify = vi.spyOn(JSON, "stringify")
      Metadata.encode(Metadata.fromJson({ v: 1, id: "a", a: 0, t0: 0, h: history })!)
      const renders = stringify.mock.calls.length
      stringify.mockRestore()
      return { looks: looks(), renders }
    }
    assert.deepStrictEqual(cost(100_000), cost(Metadata.historyLimit))
  })

  it("a history that did not come through decode is cut, too", () => {
    const history = Array.from({ length: 500 }, (_, i) => ({ attempt: i, at: 0, error: "e".repeat(1000), delay: 0 }))
    const stringify = vi.spyOn(JSON, "stringify")
    const encoded = Metadata.encode({ ...Metadata.make("a", 0), history })
    const written = stringify.mock.results.reduce((sum, { value }) => sum + String(value).length, 0)
    stringify.mockRestore()
    assert.isAtMost(written, 20 * Metadata.budget)
    assert.strictEqual(Metadata.decode(encoded)!.history.at(-1)!.attempt, 499)
  })

  it("a text longer than the budget is not parsed", () => {
    const parse = vi.spyOn(JSON, "parse")
    const hostile = `{"v":1,"id":"a","a":0,"t0":0,"h":[${'[1,1,"",1],'.repeat(87_000)}[1,1,"",1]]}`
    assert.isUndefined(Metadata.decode(hostile))
    assert.strictEqual(parse.mock.calls.length, 0)
    parse.mockRestore()
  })
})

describe("wait", () => {
  const now = 1_700_000_000_000
  const day = Delay.max
  const never = Number.POSITIVE_INFINITY
  const cases: ReadonlyArray<
    readonly [string, { readonly nb: number; readonly t0?: number; readonly maxAge?: number }, number]
  > = [
    ["none", { nb: 0 }, 0],
    ["over", { nb: now }, 0],
    ["a second", { nb: now + 1000 }, 1000],
    ["a day", { nb: now + day }, day],
    ["a day by a clock that is ahead: a day at a time", { nb: now + day + 5 }, day],
    ["further than a clock can be ahead is no delay of ours", { nb: now + 2 * day + 1 }, 0],
    ["a time that is none", { nb: 8.64e15 }, 0],
    ["a retry within maxAge", { nb: now + 1000, t0: now - 9 * day, maxAge: 10 * day }, 1000],
    ["a retry is never due after maxAge", { nb: now + day, t0: now - 9.5 * day, maxAge: 10 * day }, 0.5 * day],
    ["a delay of the first send may be longer than maxAge", { nb: now + day, maxAge: 1000 }, day]
  ]
  it.each(cases)("%s", (_, { maxAge = never, nb, t0 = now }, expected) =>
    assert.strictEqual(Metadata.wait(Metadata.make("a", t0, nb), now, maxAge), expected)
  )

  it("is a delay, and comes to an end: whoever waits as it says has waited two days at most", () =>
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.nat(), fc.double({ min: 0, noNaN: true }), (ahead, age, maxAge) => {
        const metadata = Metadata.fromJson({ v: 1, id: "a", a: 0, t0: now - age, nb: now + ahead })!
        let at = now
        for (let looks = 0; looks < 4; looks++) {
          const wait = Metadata.wait(metadata, at, maxAge)
          assert.isTrue(isWhole(wait) && wait <= day)
          at += wait
        }
        assert.strictEqual(Metadata.wait(metadata, at, maxAge), 0)
        assert.isAtMost(at, now + 2 * day)
      }),
      runs
    ))
})

describe("a publisher's clock that is ahead of the broker's", () => {
  const now = 1_700_000_000_000
  const hour = 3_600_000
  const decode = (published: number | undefined, t0: number, nb: number) => {
    const { firstPublished, notBefore } = Metadata.decode(JSON.stringify({ v: 1, id: "a", a: 0, t0, nb }), published)!
    return [firstPublished - now, notBefore === 0 ? 0 : notBefore - now]
  }

  it("is set back by the difference, so that a delay of 10 s takes 10 s", () =>
    assert.deepStrictEqual(decode(now, now + 2 * hour, now + 2 * hour + 10_000), [0, 10_000]))
  it("is left alone where the broker does not tell", () => {
    assert.deepStrictEqual(decode(undefined, now + 2 * hour, now + 2 * hour + 10), [2 * hour, 2 * hour + 10])
    assert.deepStrictEqual(decode(Number.NaN, now + hour, 0), [hour, 0])
  })
  it("is left alone within the minute by which good clocks differ", () =>
    assert.deepStrictEqual(decode(now, now + 60_000, now + 60_010), [60_000, 60_010]))
  it("a copy of an old message is not touched", () =>
    assert.deepStrictEqual(decode(now, now - hour, now + hour), [-hour, hour]))
  it("no delay stays none", () => assert.deepStrictEqual(decode(now, now + hour, 0), [0, 0]))
})
