import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { NotMeasurable } from "../src/Lateness.ts"
import * as Measured from "../src/Measured.ts"

/** A measurement whose ruler fails so often, and which counts. */
const failing = (times: number) => {
  const counted = { runs: 0 }
  const measurement = Effect.suspend(() =>
    counted.runs++ < times ? Effect.fail(new NotMeasurable([])) : Effect.succeed("a value")
  )
  return { counted, measurement }
}

it.effect("measures once what can be measured", () =>
  Effect.gen(function* () {
    const measured = yield* Measured.run(failing(0).measurement)
    assert.deepStrictEqual(measured, { times: 1, exit: Exit.succeed("a value"), reason: undefined })
  })
)

it.effect("measures again until the ruler is good, each time but the first inside the wrapper", () =>
  Effect.gen(function* () {
    let wrapped = 0
    const again: Measured.Options["again"] = (measurement) => {
      wrapped++
      return measurement
    }
    const measured = yield* Measured.run(failing(3).measurement, { again })
    assert.deepStrictEqual([measured.times, measured.exit, wrapped], [4, Exit.succeed("a value"), 3])
  })
)

it.effect("gives up in the end, and says why", () =>
  Effect.gen(function* () {
    const { counted, measurement } = failing(99)
    const { reason, times } = yield* Measured.run(measurement, { most: 3 })
    assert.deepStrictEqual([counted.runs, times], [3, 3])
    assert.instanceOf(reason, NotMeasurable)
  })
)

it.effect("never runs again what has failed in itself", () =>
  Effect.gen(function* () {
    let runs = 0
    const measurement = Effect.suspend(() => Effect.fail(`failure ${++runs}` as string | NotMeasurable))
    assert.deepStrictEqual(yield* Measured.run(measurement), {
      times: 1,
      exit: Exit.fail("failure 1"),
      reason: undefined
    })
  })
)

it.effect("takes what failed beside a ruler for a failure, and tells of that", () =>
  Effect.gen(function* () {
    const broken = new Error("the release is broken")
    const measurement = Effect.onExit(Effect.fail(new NotMeasurable([])), () => Effect.die(broken))
    const { exit, reason, times } = yield* Measured.run(measurement)
    assert.deepStrictEqual([times, reason], [1, undefined])
    assert.strictEqual(Exit.isFailure(exit) && Measured.errorOf(exit.cause), broken)
  })
)

it("a test that was measured again and then failed says both", async () => {
  const meta = {}
  let runs = 0
  const measurement = Effect.suspend(() =>
    runs++ < 2 ? Effect.fail(new NotMeasurable([])) : Effect.fail(new Error("failed in itself"))
  )
  const error = await Measured.inTest({ skip: () => {}, task: { meta } }, measurement).catch((cause: Error) => cause)
  assert.strictEqual(error?.message, "failed in itself")
  assert.deepStrictEqual(meta, { measured: 3 })
})
