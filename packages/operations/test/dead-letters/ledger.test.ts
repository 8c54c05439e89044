/** The figures of a redrive's report add up, whatever happens. */
import { Metadata } from "@requeue/core/port"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { nothing } from "../../src/dead-letters/internal/sweepStats.ts"
import * as ComeBacks from "../../src/dead-letters/internal/returned.ts"
import * as Ledger from "../../src/dead-letters/internal/ledger.ts"
import * as Operation from "../../src/dead-letters/internal/operation.ts"

const operation = Operation.make("op")

const letter = (id: string, stage: number) => ({
  ...Metadata.make(id, 0),
  redrives: 1,
  operation: Operation.tag(operation, stage)
})

/** A ledger of stages that have published so many letters each, of which so many have come back. */
const after = (stages: ReadonlyArray<readonly [number | undefined, number, number]>) => {
  const comeBacks = ComeBacks.make(operation)
  const ledger = Ledger.make({ operation: "op", isDryRun: false, comeBacks })
  for (const [index, [size, published, cameBack]] of stages.entries()) {
    ledger.begin(size)
    ledger.pass()
    ledger.step({ ...nothing, selected: published, removed: published })
    for (let n = 0; n < cameBack; n++) comeBacks.see(letter(`${n}`, index + 1))
    if (index < stages.length - 1) ledger.close()
  }
  return ledger
}

/** The report when so much was seen of the letters that are out. */
const told = (ledger: Ledger.Ledger, seen: Partial<Ledger.Seen> = {}) => {
  ledger.see({ counted: 0, unseen: 0, ...seen })
  return ledger.report()
}

const stage = fc.nat(50).chain((published) => fc.tuple(fc.constant(50), fc.constant(published), fc.nat(published)))

it("the figures add up, of all and of each stage", () => {
  fc.assert(
    fc.property(fc.array(stage, { maxLength: 5 }), fc.nat(300), fc.nat(300), (stages, counted, unseen) => {
      const { cameBack, published, stages: each, succeeded, waiting } = told(after(stages), { counted, unseen })
      const sum = (pick: (one: (typeof each)[number]) => number | undefined) =>
        each.reduce((total, one) => total + pick(one)!, 0)
      assert.strictEqual(
        published,
        sum((one) => one.published)
      )
      assert.strictEqual(
        cameBack,
        sum((one) => one.cameBack)
      )
      assert.strictEqual(
        waiting,
        sum((one) => one.waiting)
      )
      assert.strictEqual(
        succeeded,
        sum((one) => one.succeeded)
      )
      const rest = published - cameBack! - waiting! - succeeded!
      assert.isTrue(rest >= 0 && rest <= unseen, `${rest} are among ${unseen} that were not seen`)
    })
  )
})

it("what waits is presumed to be of the last stages", () => {
  const ledger = after([
    [5, 5, 1],
    [10, 10, 2]
  ])
  const { stages } = told(ledger, { counted: 9 })
  assert.deepStrictEqual(
    stages.map(({ succeeded, waiting }) => [succeeded, waiting]),
    [
      [3, 1],
      [0, 8]
    ]
  )
})

it("nothing is said of what the broker does not count, unless all have come back", () => {
  const of = (cameBack: number) => {
    const { succeeded, waiting } = told(after([[5, 5, cameBack]]), { counted: undefined })
    return [succeeded, waiting]
  }
  assert.deepStrictEqual(of(4), [undefined, undefined])
  assert.deepStrictEqual(of(5), [0, 0])
})

describe("more than the part has come back", () => {
  it.each([
    ["of a stage that is over, by what it has published", [[10, 3, 1] as const, [undefined, 0, 0] as const], 0, true],
    ["of a stage that publishes, by its size", [[10, 3, 1] as const], 0, false],
    ["of the rest, by what it has published", [[10, 10, 0] as const, [undefined, 100, 11] as const], 0, true],
    ["of the rest, by the stage before at least", [[100, 100, 0] as const, [undefined, 5, 5] as const], 0, false],
    ["with those that were not seen", [[10, 10, 1] as const], 1, true],
    ["exactly the part is not more", [[10, 10, 1] as const], 0, false]
  ])("%s", (_, stages, unseen, isBeyond) => assert.strictEqual(after(stages).isBeyond(0.1, unseen), isBeyond))
})

it("a letter comes back once, from this call alone, however often it is seen", () => {
  const comeBacks = ComeBacks.make(operation)
  for (let n = 0; n < 3; n++) comeBacks.see(letter("a", 2))
  comeBacks.see({ ...letter("b", 1), operation: Operation.tag(Operation.make("op"), 1) })
  comeBacks.see({ ...letter("c", 1), operation: undefined })
  assert.deepStrictEqual([comeBacks.of(1), comeBacks.of(2), comeBacks.all()], [0, 1, 1])
})

it("the passes add up: what is left is what the last one that counted has left", () => {
  const ledger = Ledger.make({ operation: "op", isDryRun: false, comeBacks: undefined })
  ledger.begin(undefined)
  ledger.pass()
  ledger.step({ ...nothing, selected: 4, removed: 3, unremoved: 1, queued: 7, held: 0 })
  ledger.pass()
  ledger.step({ ...nothing, selected: 2, removed: 2, refused: 1, queued: 5, held: 2 })
  ledger.pass()
  ledger.step(nothing)
  const { held, published, queued, redriven, refused, unremoved } = told(ledger)
  assert.deepStrictEqual([redriven, unremoved, refused, published, queued, held], [5, 1, 1, 6, 5, 2])
})

it("no letter has succeeded before it was looked for, and none has ceased to, whatever others have there", () => {
  const step = fc.record({
    publishes: fc.nat(20),
    acks: fc.nat(20),
    fails: fc.nat(5),
    others: fc.nat(50),
    isSeen: fc.boolean()
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const comeBacks = ComeBacks.make(operation)
      const ledger = Ledger.make({ operation: "op", isDryRun: false, comeBacks })
      ledger.begin(undefined)
      let [published, acked, failed, before] = [0, 0, 0, 0]
      for (const { acks, fails, isSeen, others, publishes } of steps) {
        published += publishes
        ledger.step({ ...nothing, selected: published, removed: published })
        const known = ledger.report()
        assert.isAtMost(known.succeeded!, acked)
        acked += Math.min(acks, published - acked - failed)
        const failing = Math.min(fails, published - acked - failed)
        for (let n = 0; n < failing; n++) comeBacks.see(letter(`${failed + n}`, 1))
        failed += failing
        if (isSeen) ledger.see({ counted: published - acked - failed + others, unseen: 0 })
        const { cameBack, succeeded, waiting } = ledger.report()
        assert.isAtMost(succeeded!, acked)
        assert.isAtLeast(succeeded!, before)
        assert.strictEqual(published, succeeded! + cameBack! + waiting!)
        before = succeeded!
      }
    })
  )
})
