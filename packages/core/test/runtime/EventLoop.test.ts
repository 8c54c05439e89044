import { assert, describe, it } from "@effect/vitest"
import * as EventLoop from "../../src/runtime/EventLoop.ts"

describe("work at the end of a job", () => {
  it("is done once for all who ask in that job, and again for those who ask later", async () => {
    let done = 0
    const ask = EventLoop.atEndOfJob(() => void done++)
    ask()
    ask()
    assert.strictEqual(done, 0)
    await Promise.resolve()
    assert.strictEqual(done, 1)
    ask()
    await Promise.resolve()
    assert.strictEqual(done, 2)
  })

  it("is done once more for one who asks while it is done", async () => {
    let done = 0
    const ask = EventLoop.atEndOfJob(() => {
      if (++done === 1) ask()
    })
    ask()
    await Promise.resolve()
    await Promise.resolve()
    assert.strictEqual(done, 2)
  })
})

describe("a value that is read once in a job", () => {
  it("is the same for all who ask in it, and read anew in the next", async () => {
    let reads = 0
    const read = EventLoop.oncePerJob(() => ++reads)
    assert.deepStrictEqual([read(), read()], [1, 1])
    await Promise.resolve()
    assert.deepStrictEqual([read(), read()], [2, 2])
  })
})
