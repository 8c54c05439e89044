/** Bursts: long where all succeeds, short where much fails, and never stuck. */
import * as fc from "fast-check"
import { assert, describe, test } from "vitest"
import { YieldBudget } from "../../src/consume/internal/scheduler.ts"

/** Batches that begin before others get a turn. `failures` are the messages of each that fail at once. */
const lengths = (bursts: YieldBudget, count: number, failures: (batch: number) => number): ReadonlyArray<number> => {
  const found: Array<number> = []
  let length = 0
  for (let batch = 0; found.length < count; batch++) {
    length++
    const isOver = bursts.begun()
    for (let n = failures(batch); n > 0; n--) bursts.failed()
    if (isOver) {
      found.push(length)
      length = 0
    }
  }
  return found
}

describe("a burst has", () => {
  test.each([
    ["512 batches where nothing fails", () => 0, 512, 512],
    ["512 where one of a hundred fails", (batch: number) => (batch % 100 === 99 ? 1 : 0), 512, 512],
    ["some 24 where all fail", () => 1, 24, 26],
    ["one where each has a hundred messages that fail", () => 100, 1, 1]
  ] as const)("%s", (_, failures, least, most) => {
    for (const length of lengths(new YieldBudget(), 40, failures).slice(20)) {
      assert.isAtLeast(length, least)
      assert.isAtMost(length, most)
    }
  })

  test("its length again soon after nothing fails any more", () => {
    const bursts = new YieldBudget()
    lengths(bursts, 10, () => 100)
    assert.strictEqual(lengths(bursts, 30, () => 0).at(-1), 512)
  })

  test("at least one batch and at most 512, whatever fails when", () =>
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 600 }), { minLength: 1, maxLength: 50 }), (failures) => {
        const found = lengths(new YieldBudget(), 20, (batch) => failures[batch % failures.length]!)
        for (const length of found) assert.isTrue(length >= 1 && length <= 512)
      })
    ))

  test("room for what fails: some 24 messages beyond those of one batch, where all fail alike", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), (size) => {
        for (const length of lengths(new YieldBudget(), 20, () => size).slice(2))
          assert.isAtMost(length * size, 26 + 2 * size)
      })
    ))
})
