import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { Case } from "../src/Case.ts"
import { Harness } from "../src/Harness.ts"
import * as Mutant from "../src/Mutant.ts"
import { fails, layer, passes } from "./fake.ts"

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
