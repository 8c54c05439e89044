import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type * as Heap from "../../src/runtime/Heap.ts"
import { afterAll, vi } from "vitest"

const heaps: Array<Heap.Heap<unknown>> = []
const sweeps = { count: 0 }

// Files share a worker: the module may have been loaded before, and is loaded again for those that come after.
vi.resetModules()
vi.doMock(import("../../src/runtime/Heap.ts"), async (original) => {
  const { make } = await original()
  return {
    make: <A>() => {
      const heap = make<A>()
      heaps.push(heap as Heap.Heap<unknown>)
      return {
        ...heap,
        keep: (predicate) => {
          sweeps.count++
          heap.keep(predicate)
        }
      } satisfies Heap.Heap<A>
    }
  }
})
const Timers = await import("../../src/runtime/Timers.ts")

afterAll(() => {
  vi.doUnmock("../src/internal/heap.ts")
  vi.resetModules()
})

it.effect("cancelled timers do not pile up, however many are set and cancelled before their time", () =>
  Effect.gen(function* () {
    const timers = yield* Timers.make
    const heap = heaps.at(-1)!
    let ran = 0
    for (let i = 0; i < 100; i++) timers.after(1000, () => ran++)
    for (let i = 0; i < 10_000; i++) {
      timers.cancel(timers.after(500 + (i % 1000), () => ran++))
      assert.isAtMost(heap.size(), 2 * 100 + 64)
    }
    assert.isAtMost(sweeps.count, 10_000 / 64)
    // Half of what is cancelled is swept, half runs out, and the count of the stale stays right.
    yield* TestClock.adjust(999)
    assert.strictEqual(ran, 0)
    for (let i = 0; i < 10_000; i++) timers.cancel(timers.after(500, () => ran++))
    assert.isAtMost(heap.size(), 2 * 100 + 64)
    yield* TestClock.adjust(1)
    assert.strictEqual(ran, 100)
    yield* TestClock.adjust(1000)
    assert.deepStrictEqual([ran, heap.size()], [100, 0])
  })
)
