import { assert, it } from "@effect/vitest"
import { coalesce } from "../../src/consume/internal/coalesce.ts"

it("runs once for many requests, and again for one that is made while it runs", () => {
  const scheduled: Array<() => void> = []
  let runs = 0
  const request = coalesce(
    (resume) => scheduled.push(resume),
    () => {
      if (++runs === 1) request()
    }
  )
  request()
  request()
  assert.deepStrictEqual([scheduled.length, runs], [1, 0])
  scheduled.shift()!()
  assert.deepStrictEqual([scheduled.length, runs], [1, 1])
  scheduled.shift()!()
  assert.deepStrictEqual([scheduled.length, runs], [0, 2])
})
