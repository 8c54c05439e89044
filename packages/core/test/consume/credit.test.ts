import { assert, it } from "@effect/vitest"
import * as Credit from "../../src/consume/internal/credit.ts"

const start = () => {
  const given: Array<number> = []
  const wanted = { now: 0 }
  const credit = Credit.make({
    subscription: { credit: (limit) => void given.push(limit) },
    wanted: () => wanted.now,
    timers: { after: () => assert.fail("nothing is to be tried again") },
    onDefect: (error) => assert.fail(String(error))
  })
  return { credit, given, wanted }
}

it("is given when it changes, and not before anything is wanted", () => {
  const { credit, given, wanted } = start()
  credit.update()
  wanted.now = 5
  credit.update()
  credit.update()
  wanted.now = 0
  credit.update()
  assert.deepStrictEqual(given, [5, 0])
})

it("of a new connection is given once, after the recovery, though it is what the lost one had", () => {
  const { credit, given, wanted } = start()
  wanted.now = 5
  credit.update()
  credit.renew(() => {
    wanted.now = 7
    credit.update()
    wanted.now = 5
    credit.update()
    assert.deepStrictEqual(given, [5])
  })
  assert.deepStrictEqual(given, [5, 5])
})
