/** Questions that many ask at the same time are asked once. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { assert, test } from "vitest"
import * as Together from "../src/internal/inspect/coalesce.ts"

test("whoever asks at the same time shares the answer, and is not hurt by one who leaves", async () => {
  const asked: Array<string> = []
  const ask = Together.make((name) =>
    Effect.gen(function* () {
      asked.push(name)
      yield* Effect.yieldNow
      return name.length
    })
  )
  const program = Effect.gen(function* () {
    const leaving = yield* Effect.forkChild(ask("rung"), { startImmediately: true })
    const staying = yield* Effect.forkChild(Effect.all([ask("rung"), ask("other"), ask("rung")], { concurrency: 3 }), {
      startImmediately: true
    })
    yield* Fiber.interrupt(leaving)
    return yield* Fiber.join(staying)
  })
  assert.deepStrictEqual(await Effect.runPromise(program), [4, 5, 4])
  assert.deepStrictEqual(asked, ["rung", "other"])
  await Effect.runPromise(ask("rung"))
  assert.deepStrictEqual(asked, ["rung", "other", "rung"])
})

test("whoever asks when the question is on its way gets a later answer, and shares it", async () => {
  let [there, asked] = [0, 0]
  const ask = Together.make(() =>
    Effect.gen(function* () {
      asked++
      const seen = there
      yield* Effect.sleep(10)
      return seen
    })
  )
  const program = Effect.gen(function* () {
    const before = yield* Effect.forkChild(ask("rung"))
    while (asked === 0) yield* Effect.yieldNow
    there = 3
    const after = yield* Effect.forkChild(Effect.all([ask("rung"), ask("rung")], { concurrency: 2 }))
    yield* TestClock.adjust(100)
    return [yield* Fiber.join(before), yield* Fiber.join(after)]
  })
  assert.deepStrictEqual(await Effect.runPromise(Effect.provide(program, TestClock.layer())), [0, [3, 3]])
  assert.strictEqual(asked, 2)
})

test("an answer is good for as long as it is said to be", async () => {
  let asked = 0
  const counting = () => Effect.sync(() => ++asked)
  const [kept, current] = [Together.make(counting, 1000), Together.make(counting)]
  const program = Effect.gen(function* () {
    assert.deepStrictEqual([yield* kept("list"), yield* kept("list")], [1, 1])
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* kept("list"), 2)
    assert.deepStrictEqual([yield* current("rung"), yield* current("rung")], [3, 4])
  })
  await Effect.runPromise(Effect.provide(program, TestClock.layer()))
})
