/** Every way in which the publish of a copy fails, and the fate of its original. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import type { Publication } from "../src/internal/client.ts"
import { attributeClose } from "../src/internal/publish/attributeClose.ts"
import { fateOf } from "../src/internal/settle/settle.ts"
import { isOfHeaders, ofEncoding, toBrokerError } from "../src/internal/toBrokerError.ts"

const closed = (words: string) => `Channel closed by server: ${words}`

describe("the fate of an original whose copy", () => {
  it.each([
    ["found no channel", "ConnectionFailed", "publish", "transient"],
    ["found the server blocked by an alarm", "Throttled", "publish", "transient"],
    ["was written, and the connection broke", "ConnectionLost", "publish", "unknown"],
    ["was written, and not confirmed in time", "Timeout", "publish", "unknown"],
    ["has objects whose declaration was cut off", "ConnectionLost", "declare", "transient"],
    ["has objects whose declaration took too long", "Timeout", "declare", "transient"],
    ["has objects that may not be declared", "AccessRefused", "declare", "rejected"],
    ["has objects that exist otherwise", "QueueMismatch", "declare", "rejected"],
    ["came back as unroutable", "Unroutable", "publish", "rejected"],
    ["is for a full queue", "QueueFull", "publish", "rejected"]
  ] as const)("%s", (_, reason, operation, fate) =>
    assert.strictEqual(
      fateOf(new BrokerError.BrokerError({ broker: "rabbitmq", operation, reason, detail: "no" })),
      fate
    )
  )

  it.each([
    ["channel closed", "unknown"],
    ["message nacked", "rejected"],
    [closed(`404 (NOT-FOUND) with message "NOT_FOUND - no exchange 'x' in vhost '/'"`), "rejected"],
    [
      closed(`403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - write access to exchange 'x' in vhost '/' refused"`),
      "rejected"
    ],
    [
      closed(`406 (PRECONDITION-FAILED) with message "message size 2 is larger than configured max size 1"`),
      "rejected"
    ],
    [closed(`311 (CONTENT-TOO-LARGE) with message "CONTENT_TOO_LARGE"`), "rejected"],
    [closed(`541 (INTERNAL-ERROR) with message "INTERNAL_ERROR"`), "unknown"],
    [closed(`506 (RESOURCE-ERROR) with message "RESOURCE_ERROR"`), "unknown"],
    [`Connection closed: 320 (CONNECTION-FORCED) with message "CONNECTION_FORCED"`, "unknown"]
  ] as const)("got this answer: %s", (text, fate) =>
    assert.strictEqual(fateOf(toBrokerError(new Error(text), { operation: "publish" })), fate)
  )

  // The driver's own errors; test/traps/refused.test.ts makes it throw them.
  it.each([
    [new TypeError("Unknown type to encode: net"), "Unsupported"],
    [new TypeError("Unknown type to encode: ECONNREFUSED"), "Unsupported"],
    [new RangeError('The value of "value" is out of range. It must be >= 0n and < 2n ** 64n.'), "Unsupported"],
    [new SyntaxError("Cannot convert header (too large) to a BigInt"), "Unsupported"],
    [new RangeError("Maximum call stack size exceeded"), "Unsupported"],
    [
      new RangeError("Encoded field table (headers or arguments) exceeds the 65536 byte encoding buffer"),
      "BodyTooLarge"
    ]
  ] as const)("cannot be encoded: %s", (thrown, reason) => {
    const error = ofEncoding(thrown, "q")
    assert.deepStrictEqual([error.reason, fateOf(error)], [reason, "rejected"])
    assert.strictEqual(isOfHeaders(error), reason === "BodyTooLarge")
    assert.isString(error.remedy)
  })

  it("was written on a closed channel", () => {
    const error = Object.assign(new Error("Channel closed"), { name: "IllegalOperationError" })
    assert.strictEqual(fateOf(ofEncoding(error, "q")), "unknown")
  })
})

it("a body above the server's limit is no matter of headers", () => {
  const words = closed(`406 (PRECONDITION-FAILED) with message "message size 2 is larger than configured max size 1"`)
  assert.isFalse(isOfHeaders(toBrokerError(new Error(words), { operation: "publish" })))
})

describe("a channel that the server closes", () => {
  const unconfirmed = (exchange: string, size = 1) => ({
    publication: { exchange, content: Buffer.alloc(size) } as unknown as Publication // The rest is not looked at.
  })
  const all = [unconfirmed(""), unconfirmed("x", 200), unconfirmed("y", 101), unconfirmed("x"), unconfirmed("x'y")]

  it.each([
    ["NOT_FOUND - no exchange 'x' in vhost '/'", [1, 3]],
    ["NOT_FOUND - no exchange 'x'y' in vhost '/'", [4]],
    ["ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'u'", [0]],
    ["PRECONDITION_FAILED - message size 200 is larger than configured max size 100", [1, 2]],
    ["PRECONDITION_FAILED - message size 200 is larger than max size 150", [1]],
    ["PRECONDITION_FAILED - invalid message", []]
  ])("%s", (words, guilty) =>
    assert.deepStrictEqual(
      attributeClose(words, all).map((one) => all.indexOf(one)),
      guilty
    )
  )

  it("has one publication to blame, if it has one", () =>
    assert.deepStrictEqual(attributeClose("PRECONDITION_FAILED - invalid message", [all[0]!]), [all[0]!]))
})
