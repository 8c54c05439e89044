import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { CheckFailed } from "../src/Check.ts"
import * as Lateness from "../src/Lateness.ts"

const reading = fc.record({
  what: fc.constant("it"),
  late: fc.oneof(fc.nat(5000), fc.constant(Number.POSITIVE_INFINITY)),
  bound: fc.nat(2000),
  control: fc.nat(5000)
})

describe("verdictOf", () => {
  it.each<[late: number, bound: number, control: number, verdict: Lateness.Verdict]>([
    [-1, 100, 9999, "Early"],
    [0, 100, 0, "OnTime"],
    [100, 100, 0, "OnTime"],
    [100, 100, 9999, "OnTime"],
    [101, 100, 0, "Late"],
    [101, 100, 1, "OnTime"],
    [150, 100, 49, "Late"],
    [150, 100, 50, "OnTime"],
    [151, 100, 50, "Late"],
    [151, 100, 51, "NotMeasurable"],
    [101, 100, 51, "NotMeasurable"],
    [Number.POSITIVE_INFINITY, 100, 50, "Late"],
    [Number.POSITIVE_INFINITY, 100, 51, "NotMeasurable"],
    [1, 0, 0, "Late"],
    [1, 0, 1, "NotMeasurable"]
  ])("%d ms late, %d allowed, the control %d: %s", (late, bound, control, verdict) => {
    assert.strictEqual(Lateness.verdictOf({ what: "it", late, bound, control }), verdict)
  })

  it("what is within its bound is on time, whatever the control says", () =>
    fc.assert(fc.property(reading, (one) => one.late > one.bound || Lateness.verdictOf(one) === "OnTime")))

  it("what is later than one and a half times its bound never passes", () =>
    fc.assert(fc.property(reading, (one) => one.late <= 1.5 * one.bound || Lateness.verdictOf(one) !== "OnTime")))

  it("with a control in time, lateness beyond the bound and the control is always found", () =>
    fc.assert(
      fc.property(
        reading,
        (one) =>
          one.control > one.bound / 2 || one.late <= one.bound + one.control || Lateness.verdictOf(one) === "Late"
      )
    ))
})

describe("check", () => {
  const late = { what: "a", late: 300, bound: 100, control: 5 }
  const unclear = { what: "b", late: 300, bound: 100, control: 200 }
  const onTime = { what: "c", late: 5, bound: 100, control: 5 }

  it.effect("is content with what is on time", () => Lateness.check([onTime, onTime]))

  it.effect("tells what is late before what cannot be measured", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Lateness.check([unclear, late, onTime]))
      assert.instanceOf(error, CheckFailed)
      assert.strictEqual(
        error.message,
        "1 of 3: a: 300 ms late; 100 ms are allowed, and a control of the same moment was 5 ms late"
      )
    })
  )

  it.effect("lets a share be late or unclear, and none early", () =>
    Effect.gen(function* () {
      const many = (wrong: ReadonlyArray<Lateness.Reading>) => [...wrong, ...Array.from({ length: 98 }, () => onTime)]
      yield* Lateness.check(many([late, unclear]), 0.02)
      assert.instanceOf(yield* Effect.flip(Lateness.check(many([late, late]), 0.01)), CheckFailed)
      assert.instanceOf(yield* Effect.flip(Lateness.check(many([late, unclear]), 0.01)), Lateness.NotMeasurable)
      const early = { ...onTime, late: -5 }
      const error = yield* Effect.flip(Lateness.check(many([early]), 0.5))
      assert.strictEqual(error.message, "1 of 99: c: 5 ms early")
    })
  )

  it("refuses a share that is none", () => {
    for (const share of [-0.1, 1, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => Lateness.check([], share), /^Lateness.check: share must be from 0 to below 1, got /)
    }
  })

  it.effect("takes 29 of 100 for 0.29 of 100", () =>
    Lateness.check([...Array.from({ length: 71 }, () => onTime), ...Array.from({ length: 29 }, () => late)], 0.29)
  )

  it.effect("tells all that cannot be measured", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Lateness.check([unclear, onTime, unclear]))
      assert.isTrue(error instanceof Lateness.NotMeasurable && error.readings.length === 2)
    })
  )
})
