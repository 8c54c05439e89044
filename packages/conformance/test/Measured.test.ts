import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
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
    assert.deepStrictEqual(measured, { times: 1, value: "a value", reason: undefined })
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
    assert.deepStrictEqual([measured.times, measured.value, wrapped], [4, "a value", 3])
  })
)

it.effect("gives up in the end, and says why", () =>
  Effect.gen(function* () {
    const { counted, measurement } = failing(99)
    const { reason, times, value } = yield* Measured.run(measurement, { most: 3 })
    assert.deepStrictEqual([counted.runs, times, value], [3, 3, undefined])
    assert.instanceOf(reason, NotMeasurable)
  })
)

it.effect("never runs again what has failed in itself", () =>
  Effect.gen(function* () {
    let runs = 0
    const measurement = Effect.suspend(() => Effect.fail(`failure ${++runs}` as string | NotMeasurable))
    assert.strictEqual(yield* Effect.flip(Measured.run(measurement)), "failure 1")
  })
)
