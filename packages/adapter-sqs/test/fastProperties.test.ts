import { setFlagsFromString } from "node:v8"
import { SQSClient } from "@aws-sdk/client-sqs"
import { assert, describe, it } from "@effect/vitest"
import { makeFast } from "../src/internal/fastProperties.ts"

/** V8's own word of how it keeps an object. */
const isFast = (object: object): boolean => {
  setFlagsFromString("--allow-natives-syntax")
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- Only V8 with that flag can parse it.
  return (new Function("object", "return %HasFastProperties(object)") as (object: object) => boolean)(object)
}

const make = () => new SQSClient({ region: "eu-west-1", credentials: { accessKeyId: "a", secretAccessKey: "b" } })

describe("the SDK's configuration", () => {
  it("is a hash table, and then no more, also once it has further properties", () => {
    const { config } = make()
    assert.isFalse(isFast(config))
    makeFast(config)
    assert.isTrue(isFast(config))
    Object.assign(config, { signingRegion: "eu-west-1", signingName: "sqs" })
    assert.isTrue(isFast(config))
  })

  it("is what it was, and can be changed", () => {
    const { config } = make()
    const before = Object.getOwnPropertyDescriptors(config)
    const prototype: unknown = Object.getPrototypeOf(config)
    makeFast(config)
    assert.deepStrictEqual(Object.getOwnPropertyDescriptors(config), before)
    assert.strictEqual(Object.getPrototypeOf(config), prototype)
    config.systemClockOffset = 5
    assert.strictEqual({ ...config }.systemClockOffset, 5)
  })
})
