/** What deliveries are to whoever makes and reads thousands of them a second: all of one shape, with facts on request. */
import { setFlagsFromString } from "node:v8"
import { assert, describe, it } from "@effect/vitest"
import type { Message } from "../src/internal/client.ts"
import { arrived } from "../src/internal/consume/arrival.ts"
import * as Receipt from "../src/internal/consume/receipt.ts"

/** V8's own word of two objects: whether they have one layout, which is that of no hash table. */
const areAlike = (one: object, other: object): boolean => {
  setFlagsFromString("--allow-natives-syntax")
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- Only V8 with that flag can parse it.
  const compare = new Function("a", "b", "return %HasFastProperties(a) && %HaveSameMap(a, b)")
  return (compare as (one: object, other: object) => boolean)(one, other)
}

const message = (MessageId: string, more: Partial<Message> = {}): Message => ({
  MessageId,
  ReceiptHandle: `r-${MessageId}`,
  Body: "b",
  Attributes: { SentTimestamp: "1700000000000", SenderId: "s" },
  MessageAttributes: {},
  ...more
})

/** One that brings out a fault of ours. */
const faulty = (MessageId: string): Message => ({
  ...message(MessageId),
  get MessageAttributes(): never {
    throw new TypeError("a fault")
  }
})

const context = { uncounted: 0, before: 0, now: 0 }

it.each([
  ["block", { key: "g" }],
  ["resend", undefined]
] as const)("with %s, the key of a group is %o", (fifoRetry, place) => {
  const delivery = arrived(message("a", { Attributes: { MessageGroupId: "g" } }), { ...context, fifoRetry }, "g")
  assert.deepStrictEqual([delivery.place, delivery.group, delivery.headers["message-group-id"]], [place, "g", "g"])
})

const deliveryOf = (from: Message, fifo = false) => {
  const receipt = Receipt.make(from, { fifo, receivedAt: 0, leaseEnds: 1, countsHere: false })
  return arrived(from, context, receipt.group, receipt)
}

describe("deliveries", () => {
  it("are of one shape, whatever they are", () => {
    const first = deliveryOf(message("a"))
    const others = [
      deliveryOf(message("b")),
      deliveryOf(message("c", { MessageAttributes: { x: { DataType: "Number", StringValue: "1" } } })),
      deliveryOf(message("d", { Attributes: { MessageGroupId: "g" } }), true),
      arrived(message("e"), context, undefined),
      arrived(faulty("f"), context, undefined)
    ]
    for (const other of others) assert.isTrue(areAlike(first, other), other.metadata.id)
  })

  it("tell the facts of SQS to whoever asks, and have none where they could not be read", () => {
    assert.deepInclude(deliveryOf(message("a")).native?.["sqs"], { messageId: "a" })
    assert.deepInclude(arrived(message("b"), context, undefined).native?.["sqs"], { messageId: "b" })
    const { native, unreadable } = arrived(faulty("c"), context, undefined)
    assert.deepStrictEqual([native, unreadable?.message], [{}, "a fault"])
  })
})
