/** What a rounding reports of a retry's delays is what it does to each of them. */
import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Rounding from "../src/internal/declare/topologies/rounding.ts"

const ascending = (numbers: ReadonlyArray<number>) => numbers.toSorted((a, b) => a - b)

/** Levels of some binary digits, and rungs, the last of which keeps every delay. */
const roundings: fc.Arbitrary<Rounding.Rounding> = fc
  .record({
    digits: fc.uniqueArray(fc.integer({ min: 0, max: 9 }), { maxLength: 5 }),
    unit: fc.integer({ min: 1, max: 4 }),
    rungs: fc.uniqueArray(fc.integer({ min: 1, max: 1000 }), { maxLength: 3 })
  })
  .map(({ digits, rungs, unit }) => ({
    levels: ascending(digits.map((digit) => unit * 2 ** digit)),
    rungs: [...ascending(rungs), 1001]
  }))

const ranges = fc
  .tuple(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 1, max: 1000 }))
  .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)

it("the lateness and the group are those of the worst delay of the range", () =>
  fc.assert(
    fc.property(roundings, ranges, (rounding, [low, high]) => {
      const first = Math.max(1, low)
      const delays = Array.from({ length: high - first + 1 }, (_, index) => first + index)
      const counts = [...Map.groupBy(delays, (delay) => Rounding.kept(rounding, delay)).values()].map(
        (all) => all.length
      )
      const { group, late } = Rounding.effectOn(rounding, [low, high])
      assert.strictEqual(late, Math.max(...delays.map((delay) => Rounding.kept(rounding, delay) - delay)))
      assert.strictEqual(group[1] - group[0] + 1, Math.max(...counts))
    }),
    { numRuns: 1000, examples: [[{ levels: [6400], rungs: [8591] }, [4296, 8591]]] }
  ))
