import { assert, describe, it } from "@effect/vitest"
import { AsyncLocalStorage } from "node:async_hooks"
import * as AsyncContext from "../../src/runtime/AsyncContext.ts"

const storage = new AsyncLocalStorage<string>()
const current = () => storage.getStore()
const within = storage.run("owner", AsyncContext.capture)

describe("AsyncContext", () => {
  it("calls a function in the context that was captured, with its arguments", () => {
    const seen = storage.run("caller", () => within((a: number, b: number) => [a + b, current()], 1, 2))
    assert.deepStrictEqual(seen, [3, "owner"])
  })

  it("lets no call see what another one has entered, nor its caller", () => {
    storage.run("caller", () => {
      within(() => storage.enterWith("leak"))
      assert.deepStrictEqual([current(), within(current)], ["caller", "owner"])
    })
  })

  it("holds for what the function starts", async () => {
    const later = async () => {
      await Promise.resolve()
      return current()
    }
    assert.strictEqual(await storage.run("caller", () => within(later)), "owner")
  })

  it("passes on what the function throws, and goes back to the caller's context", () => {
    storage.run("caller", () => {
      const fail = () => {
        throw new Error("boom")
      }
      assert.throws(() => within(fail), "boom")
      assert.strictEqual(current(), "caller")
    })
  })

  it("binds the functions of options, and nothing else", () => {
    const options = storage.run("owner", () =>
      AsyncContext.bound({ filter: (suffix: string) => `${current()}${suffix}`, limit: 3 })
    )
    assert.strictEqual(
      storage.run("caller", () => options.filter("!")),
      "owner!"
    )
    assert.strictEqual(options.limit, 3)
    const plain = { limit: 3 }
    const bound = AsyncContext.bound(plain)
    plain.limit = 4
    assert.deepStrictEqual(bound, { limit: 3 })
  })
})
