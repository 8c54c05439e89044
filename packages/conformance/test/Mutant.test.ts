import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { Case } from "../src/Case.ts"
import { Harness } from "../src/Harness.ts"
import * as Mutant from "../src/Mutant.ts"
import * as VirtualTime from "../src/VirtualTime.ts"
import { fails, layer, passes, unmeasurable } from "./fake.ts"

/** The fake under another name. */
const broken = Layer.provideMerge(
  Layer.effect(
    Harness,
    Effect.map(Harness, (harness) => ({ ...harness, name: "broken" }))
  ),
  layer
)

const patch: Mutant.Patch = { name: "p", kills: "case", file: "f.ts", text: "a", replacement: "b" }

const one = (run: (isBroken: boolean) => Case["run"]): Case => ({
  group: "group",
  name: patch.kills,
  run: Effect.flatMap(Harness, ({ name }) => run(name === "broken"))
})

const runPatched = (of: Case) => Mutant.runPatched(patch, { name: "fake", sound: layer, broken, cases: [of] })

describe("runPatched", () => {
  it.live("tells of a patch on which the case fails, or waits for ever, and of one on which it passes", () =>
    Effect.gen(function* () {
      const verdicts = yield* Effect.forEach(
        [fails.run, Effect.never, Effect.void],
        (run) => runPatched(one((isBroken) => (isBroken ? run : Effect.void))),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        verdicts.map(({ _tag }) => _tag),
        ["Killed", "Killed", "Survived"]
      )
    }).pipe(VirtualTime.run)
  )

  it.live("tells of a machine that is too late for the case, on the sound adapter or on the patched one", () =>
    Effect.gen(function* () {
      for (const isLateOn of [true, false]) {
        const late = one((isBroken) => (isBroken === isLateOn ? unmeasurable(5).run : Effect.void))
        const verdict = yield* runPatched(late)
        assert.strictEqual(verdict._tag, "NotMeasurable")
      }
    })
  )

  it.live("dies when the case does not pass without the patch", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(runPatched(one((isBroken) => (isBroken ? passes.run : fails.run))))
      assert.isTrue(Exit.isFailure(exit))
      assert.include(String(exit), "does not pass on the sound adapter")
    })
  )
})

describe("report", () => {
  const reported = (verdict: Mutant.Verdict) => {
    const meta: { notMeasurable?: string } = {}
    const skips: Array<string | undefined> = []
    Mutant.report({ task: { meta }, skip: (reason) => skips.push(reason) }, verdict)
    return { meta, skips }
  }

  it("skips what could not be measured, and says so in the report", () => {
    const { meta, skips } = reported({ _tag: "NotMeasurable", reason: "late" })
    assert.deepStrictEqual([meta, skips], [{ notMeasurable: "late" }, ["not measurable here: late"]])
  })

  it("throws for a mutant that survived, and for none that was killed", () => {
    assert.throws(() => reported({ _tag: "Survived", outcome: { _tag: "Passed" } }), /survived: \{"_tag":"Passed"/)
    assert.deepStrictEqual(reported({ _tag: "Killed", error: new Error("no") }), { meta: {}, skips: [] })
  })
})
