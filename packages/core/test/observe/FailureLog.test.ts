/** Lines about failures, in virtual time: which there are, when, and what they count. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as FailureLog from "../../src/observe/FailureLog.ts"
import type { Annotations } from "../../src/port/Log.ts"
import * as Timers from "../../src/runtime/Timers.ts"

const make = Effect.gen(function* () {
  const lines: Array<Annotations> = []
  const timers = yield* Timers.make
  let waiting = 0
  const log = FailureLog.make({
    timers: {
      ...timers,
      after: (delay, run) => {
        waiting++
        return timers.after(delay, () => {
          waiting--
          run()
        })
      }
    },
    warn: (line, annotations) => lines.push({ line, ...annotations })
  })
  return {
    log,
    waiting: () => waiting,
    fail: (message: string, id = "a", name = "Error") => log.add({ messageId: id, attempts: 1 }, { name, message }),
    /** The lines since the last look. */
    news: () => lines.splice(0)
  }
})

const first = "a handler failed"
const again = "a handler failed again"

const lineOf = (line: string, count: number, pattern: string, errorMessage: string, messageId = "a") => ({
  line,
  messageId,
  attempts: 1,
  count,
  pattern,
  errorName: "Error",
  errorMessage
})

describe("a handler that fails", () => {
  it.effect("is logged at once, then once a minute with the number and an example, until it works", () =>
    Effect.gen(function* () {
      const { fail, news, waiting } = yield* make
      fail("HTTP 503 after 12 ms", "a")
      assert.deepStrictEqual(news(), [lineOf(first, 1, "HTTP 503 after <duration>", "HTTP 503 after 12 ms", "a")])
      fail("HTTP 503 after 13 ms", "b")
      fail("HTTP 503 after 14 ms", "c")
      yield* TestClock.adjust(59_999)
      assert.deepStrictEqual(news(), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(news(), [lineOf(again, 2, "HTTP 503 after <duration>", "HTTP 503 after 14 ms", "c")])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(news(), [])
      assert.strictEqual(waiting(), 0)
    }).pipe(Effect.scoped)
  )

  it.effect("is logged at once again after a minute in which it worked", () =>
    Effect.gen(function* () {
      const { fail, news, waiting } = yield* make
      fail("down")
      yield* TestClock.adjust("10 seconds")
      fail("down")
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual(news(), [lineOf(first, 1, "down", "down"), lineOf(again, 1, "down", "down")])
      yield* TestClock.adjust("9 seconds")
      fail("down")
      assert.deepStrictEqual(news(), [])
      yield* TestClock.adjust("51 seconds")
      assert.deepStrictEqual(news(), [lineOf(again, 1, "down", "down")])
      // Its timer still runs, but its last failure was a minute and more ago.
      yield* TestClock.adjust("20 seconds")
      fail("down")
      assert.deepStrictEqual(news(), [lineOf(first, 1, "down", "down")])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(news(), [])
      assert.strictEqual(waiting(), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("has lines for each pattern, and for each name", () =>
    Effect.gen(function* () {
      const { fail, news } = yield* make
      for (const order of [1, 2, 3]) {
        fail(`no order ${order}`)
        fail(`no order ${order}`, "a", "TypeError")
        fail("down")
      }
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(
        news().map(({ count, errorName, pattern }) => [errorName, pattern, count]),
        [1, 2].flatMap((count) => [
          ["Error", "no order <num>", count],
          ["TypeError", "no order <num>", count],
          ["Error", "down", count]
        ])
      )
    }).pipe(Effect.scoped)
  )

  it.effect("counts what has no line yet in a last one when the consumer stops", () =>
    Effect.gen(function* () {
      const { fail, log, news } = yield* make
      for (const message of ["down", "down", "slow"]) fail(message)
      news()
      log.close()
      assert.deepStrictEqual(news(), [lineOf(again, 1, "down", "down")])
      log.close()
      assert.deepStrictEqual(news(), [])
    }).pipe(Effect.scoped)
  )

  it.effect("floods neither the log nor the memory with texts that never repeat", () =>
    Effect.gen(function* () {
      const { fail, news, waiting } = yield* make
      const word = (number: number) => String(number).replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)]!)
      for (let number = 0; number < 1000; number++) fail(`no ${word(number)}`)
      assert.strictEqual(waiting(), 51)
      yield* TestClock.adjust("1 minute")
      const lines = news()
      assert.lengthOf(lines, 52)
      assert.deepStrictEqual(
        lines.slice(-2).map(({ count, errorMessage, pattern }) => [pattern, count, errorMessage]),
        [
          ["(other patterns)", 1, `no ${word(50)}`],
          ["(other patterns)", 949, `no ${word(999)}`]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is logged with its stack where that is known, and with texts as long as those of dead letters", () =>
    Effect.gen(function* () {
      const { log, news } = yield* make
      log.add({}, { name: "Error", message: "x".repeat(1000), stack: "    at pay (pay.js:1:1)" })
      const [line = {}] = news()
      assert.strictEqual(line["errorMessage"], "x".repeat(256))
      assert.strictEqual(line["errorStack"], "    at pay (pay.js:1:1)")
    }).pipe(Effect.scoped)
  )

  it("is counted in a line also where its timer is late, because the event loop stood still", () => {
    let now = 0
    const lines: Array<unknown> = []
    const timers = { now: () => now, after: () => ({ run: undefined, waits: false }), cancel: () => {} }
    const log = FailureLog.make({ timers, warn: (_, { count }) => lines.push(count) })
    const error = { name: "Error", message: "down" }
    for (let n = 0; n < 9; n++) log.add({}, error)
    now = 61_500
    log.add({}, error)
    assert.deepStrictEqual(lines, [1, 8, 1])
  })
})
