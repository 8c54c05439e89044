import { Metadata } from "@requeue/core/port"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { DeadLetter } from "../../src/dead-letters/DeadLetters.ts"
import * as Groups from "../../src/dead-letters/internal/groups.ts"

const letter = (id: string, at: number, message: string, origin: Partial<DeadLetter["origin"]> = {}): DeadLetter => ({
  id,
  body: new Uint8Array(),
  headers: {},
  native: {},
  firstPublished: 0,
  redrives: 0,
  history: [],
  metadata: Metadata.make(id, 0),
  origin: {
    queue: "orders",
    attempts: 4,
    reason: "retries-exhausted",
    at,
    error: { name: "Error", message },
    ...origin
  }
})

const foreign = (id: string, firstPublished: number): DeadLetter => ({
  ...letter(id, 0, ""),
  metadata: Metadata.make(id, firstPublished),
  origin: undefined
})

const letters = fc.array(
  fc.oneof(
    fc
      .record({
        id: fc.uuid(),
        at: fc.nat(5),
        message: fc.constantFrom("HTTP 503", "HTTP 404", "order 1", "order 22", "'a' is no card", "down"),
        queue: fc.constantFrom("a", "b"),
        reason: fc.constantFrom(...Metadata.reasons)
      })
      .map(({ at, id, message, queue, reason }) => letter(id, at, message, { queue, reason })),
    fc.record({ id: fc.uuid(), at: fc.nat(5) }).map(({ at, id }) => foreign(id, at))
  )
)

describe("groups", () => {
  it("are told apart by queue, reason, name and pattern, most frequent first, then the newest", () => {
    const refused = (port: number) => letter(`refused-${port}`, port, `connect ECONNREFUSED 10.0.0.1:${port}`)
    const found = Groups.group([
      letter("card", 9, "card number is invalid", { reason: "permanent" }),
      ...[5001, 5003, 5002].map(refused),
      letter("a", 1, "HTTP 503"),
      letter("b", 2, "HTTP 503"),
      letter("c", 3, "HTTP 404"),
      letter("d", 4, "HTTP 404", { queue: "bills" }),
      foreign("who", 7)
    ])
    assert.deepStrictEqual(
      found.map(({ count, id, pattern }) => [count, pattern, id]),
      [
        [3, "connect ECONNREFUSED <addr>", "refused-5003"],
        [2, "HTTP 503", "b"],
        [1, "card number is invalid", "card"],
        [1, undefined, "who"],
        [1, "HTTP 404", "d"],
        [1, "HTTP 404", "c"]
      ]
    )
    const { message, newest, oldest } = found[0]!
    assert.deepStrictEqual([message, oldest, newest], ["connect ECONNREFUSED 10.0.0.1:5003", 5001, 5003])
    assert.deepStrictEqual([found.browsed, found.total, found.other], [9, 9, 0])
  })

  it("count each letter once, and are the same in whatever order the letters come", () => {
    const summary = (all: ReadonlyArray<DeadLetter>) =>
      Groups.group(all).map((group) => ({ ...group, id: "", message: "" }))
    fc.assert(
      fc.property(letters, (all) => {
        const found = Groups.group(all)
        assert.strictEqual(
          found.reduce((sum, { count }) => sum + count, 0),
          all.length
        )
        assert.deepStrictEqual(summary(all.toReversed()), summary(all))
        for (const [index, { count, newest, oldest }] of found.entries()) {
          assert.isAtMost(oldest!, newest!)
          const next = found[index + 1]
          assert.isTrue(next === undefined || count > next.count || (count === next.count && newest! >= next.newest!))
        }
      })
    )
  })

  it("have no times where nobody knows any", () => {
    const undated = { ...foreign("a", 0), metadata: Metadata.undated("a", 9) }
    const times = (...all: ReadonlyArray<DeadLetter>) => Groups.group(all).map(({ newest, oldest }) => [oldest, newest])
    assert.deepStrictEqual(times(undated, undated), [[undefined, undefined]])
    assert.deepStrictEqual(times(undated, foreign("b", 7), undated, foreign("c", 5)), [[5, 7]])
  })

  it("have an example that is one of them, and the newest", () => {
    fc.assert(
      fc.property(letters, (all) => {
        for (const { id, message, newest } of Groups.group(all)) {
          const example = all.find((each) => each.id === id)!
          assert.strictEqual(example.origin?.error.message, message)
          assert.strictEqual(example.origin?.at ?? example.metadata.firstPublished, newest)
        }
      })
    )
  })

  it("are bounded in number and size; what is beyond counts as other", () => {
    const word = (n: number) => String.fromCodePoint(...Array.from(`${n}`, (digit) => 97 + Number(digit)))
    const count = Groups.limit + 500
    const long = (n: number) => letter(`${n}`, n, `${word(n)} ${"x".repeat(10_000)}`, { queue: "q" })
    const found = Groups.group(Array.from({ length: count }, (_, n) => long(n)).flatMap((each) => [each, each]))
    assert.deepStrictEqual([found.length, found.other, found.browsed], [Groups.limit, 1000, 2 * count])
    assert.isTrue(found.every(({ message, pattern }) => message!.length <= 256 && pattern!.length <= 256))
  })

  it("know a frequent cause that comes after many rare ones", () => {
    const rare = Array.from({ length: 3 * Groups.limit }, (_, n) => letter(`${n}`, n, "", { queue: `q${n}` }))
    const late = Array.from({ length: 500 }, (_, n) => letter(`late-${n}`, 9000 + n, "down"))
    const [first] = Groups.group([...rare, ...late])
    assert.deepInclude(first, { pattern: "down", id: "late-499" })
    assert.isAtLeast(first!.count, 498)
    assert.isAtLeast(first!.count + first!.missed, 500)
  })

  it("count at least what they say, and at most what they missed beside it; every frequent cause is among them", () => {
    const cause = fc.oneof(fc.constantFrom("a", "b"), fc.stringMatching(/^[a-z]$/))
    fc.assert(
      fc.property(fc.array(cause, { maxLength: 60 }), fc.integer({ min: 1, max: 6 }), (causes, places) => {
        const counter = Groups.make(places)
        for (const [at, each] of causes.entries()) counter.add(letter(`${at}`, at, each))
        const found = counter.all(causes.length, undefined)
        assert.isAtMost(found.length, places)
        const exact = (pattern: string | undefined) => causes.filter((each) => each === pattern).length
        for (const { count, missed, pattern } of found) {
          assert.isAtMost(count, exact(pattern))
          assert.isAtLeast(count + missed, exact(pattern))
        }
        const frequent = [...new Set(causes)].filter((each) => exact(each) > causes.length / places)
        assert.includeMembers(
          found.map(({ pattern }) => pattern),
          frequent
        )
        const counted = found.reduce((sum, { count }) => sum + count, 0)
        assert.strictEqual(counted + found.other, causes.length)
        if (new Set(causes).size <= places) assert.isTrue(found.every(({ missed }) => missed === 0))
      })
    )
  })

  it("of letters that lack the text of their error are told by its name", () => {
    const cut = { error: { name: "TypeError", message: "" } }
    const [group, ...others] = Groups.group([letter("a", 1, "", cut), letter("b", 2, "", cut)])
    assert.deepInclude(group, { error: "TypeError", pattern: "", count: 2 })
    assert.isEmpty(others)
  })
})
