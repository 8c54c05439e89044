/** The translation of errors, which is pure. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core/port"
import { toBrokerError } from "../src/internal/toBrokerError.ts"
import { sqliteError } from "./driver.ts"

describe("toBrokerError", () => {
  it.each([
    [1, "ConnectionFailed", true],
    [3, "AccessRefused", undefined],
    [5, "Throttled", undefined],
    [5 | (1 << 8), "Throttled", undefined],
    [8, "AccessRefused", undefined],
    [10, "ConnectionLost", undefined],
    [11, "ConnectionFailed", true],
    [13, "Throttled", undefined],
    [14, "ConnectionFailed", true],
    [18, "BodyTooLarge", undefined],
    [19, "AccessRefused", undefined],
    [26, "ConnectionFailed", true]
  ] as const)("the code %s is %s", (code, reason, isMisconfigured) => {
    const error = toBrokerError(sqliteError(code, "no"), { operation: "publish", queue: "orders" })
    assert.deepStrictEqual([error.reason, error.isMisconfigured, error.detail], [reason, isMisconfigured, "no"])
    assert.strictEqual(error.remedy === undefined, reason === "ConnectionLost")
  })

  it("names the file that cannot be opened", () =>
    assert.strictEqual(toBrokerError(new Error("no"), { operation: "open", path: "./q.db" }).detail, "./q.db: no"))

  it("leaves an error alone that is one already", () => {
    const error = toBrokerError(new Error("no"), { operation: "publish" })
    assert.strictEqual(toBrokerError(error, { operation: "settle" }), error)
    assert.instanceOf(error, BrokerError.BrokerError)
  })
})
