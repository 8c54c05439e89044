import { assert, describe, it } from "@effect/vitest"
import * as Failure from "../src/Failure.ts"
import * as Reporter from "../src/internal/reporter.ts"
import { delivery } from "./items.ts"

const start = () => {
  const lines: Array<string> = []
  const reporter = Reporter.make(
    "q",
    undefined,
    (message, { error }) => lines.push(`${message.split(";")[0]}: ${String(error)}`),
    ({ message, name }) => ({ name, message: message.replace("secret", "***") })
  )
  return { lines, fail: (error: unknown) => reporter.failed(delivery("a"), Failure.make(error, 0), false) }
}

describe("a handler that fails", () => {
  it("is logged once for each name of error, redacted, also without a hook", () => {
    const { fail, lines } = start()
    fail(new Error("the secret"))
    fail(new Error("again"))
    fail(new TypeError("other"))
    assert.deepStrictEqual(lines, ["a handler failed: Error: the ***", "a handler failed: TypeError: other"])
  })

  it("does not fill the memory with names", () => {
    const { fail, lines } = start()
    for (let n = 0; n < 1000; n++) fail(Object.assign(new Error("x"), { name: `Error${n}` }))
    assert.strictEqual(lines.length, 100)
  })
})
