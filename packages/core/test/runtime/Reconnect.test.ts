import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Reconnect from "../../src/runtime/Reconnect.ts"

it("pauses grow to the longest, and are spread by half", () => {
  const options = { first: 100, max: 400 }
  const longest = [0, 1, 2, 3, 4, 5, 1000].map((failures) => Reconnect.pause(failures, 1, options))
  assert.deepStrictEqual(longest, [0, 100, 150, 225, 337.5, 400, 400])
  assert.strictEqual(Reconnect.pause(5000, 1, { first: 0, max: 0 }), 0)
  fc.assert(
    fc.property(fc.nat(10_000), fc.double({ min: 0, max: 1, noNaN: true }), (failures, random) => {
      const full = Reconnect.pause(failures, 1, options)
      const pause = Reconnect.pause(failures, random, options)
      assert.isTrue(pause >= full / 2 && pause <= full)
    })
  )
})

it("tells of the beginning of an outage, and then now and then", () => {
  const told = Array.from({ length: 61 }, (_, failures) => failures).filter(Reconnect.isTold)
  assert.deepStrictEqual(told, [0, 1, 20, 40, 60])
})
