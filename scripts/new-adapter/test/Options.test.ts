import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { AcmeOptions } from "../src/index.ts"

const ok = (options: AcmeOptions.Options) => Result.getOrThrow(AcmeOptions.decode(options))

describe("options", () => {
  it("have defaults", () => {
    const { create, timeout, url } = ok({})
    assert.deepStrictEqual([create, timeout, Redacted.value(url).href], [true, 10_000, "acme://localhost"])
  })

  it("come from the query as well, and code beats the query", () =>
    assert.deepInclude(ok({ url: "acme://h?timeout=500&create=false", timeout: 700 }), { timeout: 700, create: false }))

  it.each([
    ["nonsense", "url"],
    ["http://h", "url"],
    ["acme://h?nonsense=1", "url"],
    ["acme://h?timeout=1", "timeout"],
    ["acme://h?create=often", "create"],
    ["acme://h?timeout=500&timeout=600", "url"],
    ["acme://user:p/ss@h", "url"]
  ])("refuse %s", (url, field) => {
    const refused = AcmeOptions.decode({ url })
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.field : undefined, field)
  })

  it("never show a password", () => {
    const url = "acme://user:hunter2@h"
    const refused = AcmeOptions.decode({ url: `${url}?timeout=x` })
    assert.notInclude(JSON.stringify([ok({ url }), Result.isFailure(refused) && refused.failure.message]), "hunter2")
  })
})
