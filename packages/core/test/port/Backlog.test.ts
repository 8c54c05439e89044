import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Backlog from "../../src/port/Backlog.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"

const request = { queue: "orders", retry: RetryPolicy.make() }

describe("a backlog", () => {
  it.effect("is what the counts tell, where the adapter knows no more, and says so of the rest", () =>
    Effect.gen(function* () {
      const counts = () => Effect.succeed({ ready: 3, inFlight: undefined, delayed: 2, isPaused: true })
      const { isPaused, ready, remarks, ...rest } = yield* Backlog.of({ admin: { counts } }, request)
      assert.deepStrictEqual([ready, rest.delayed, rest.inFlight, isPaused], [3, 2, undefined, true])
      assert.deepStrictEqual(Object.keys(remarks).toSorted(), [
        "backoff",
        "consumers",
        "inFlight",
        "oldest",
        "undelivered"
      ])
    })
  )
})

describe("groups of delayed messages", () => {
  const waits = fc.array(fc.integer({ min: -1000, max: 90_000_000 }))

  it("count each message once, the soonest first, and none is empty", () => {
    fc.assert(
      fc.property(waits, (all) => {
        const groups = Backlog.group(all)
        assert.strictEqual(
          groups.reduce((sum, { count }) => sum + count, 0),
          all.length
        )
        assert.isTrue(groups.every(({ count }) => count > 0))
        const times = groups.map(({ within }) => within)
        assert.deepStrictEqual(
          times,
          [...new Set(times)].toSorted((a, b) => a - b)
        )
      })
    )
  })

  it("have each message within its time, up to a day", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 86_400_000 }), (wait) => {
        const [only] = Backlog.group([wait])
        assert.isAtLeast(only!.within, wait)
      })
    )
  })

  it("of the same time are one when they are added up", () => {
    const parts = [
      { within: 5, count: 1 },
      { within: 1, count: 0 },
      { within: 5, count: 2 },
      { within: 3, count: 4 }
    ]
    assert.deepStrictEqual(Backlog.sum(parts), [
      { within: 3, count: 4 },
      { within: 5, count: 3 }
    ])
  })
})
