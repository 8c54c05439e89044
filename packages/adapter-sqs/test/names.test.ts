import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Names from "../src/internal/names.ts"

describe("a queue's name", () => {
  it.each([
    ["orders", "orders", undefined, undefined],
    ["orders.dlq", "orders-dlq", undefined, undefined],
    ["eu.orders_2", "eu-orders_2", undefined, undefined],
    ["orders.fifo", "orders.fifo", undefined, undefined],
    ["orders.fifo.dlq", "orders-dlq.fifo", undefined, undefined],
    ["orders.dlq.fifo", "orders-dlq.fifo", undefined, undefined],
    ["arn:aws:sqs:eu-west-1:123456789012:orders", "orders", "eu-west-1", "123456789012"],
    ["arn:aws-cn:sqs:cn-north-1:123456789012:orders.fifo.dlq", "orders-dlq.fifo", "cn-north-1", "123456789012"],
    ["https://sqs.eu-west-1.amazonaws.com/123456789012/orders.dlq", "orders-dlq", "eu-west-1", "123456789012"],
    ["https://eu-west-1.queue.amazonaws.com/123456789012/orders", "orders", "eu-west-1", "123456789012"],
    ["https://queue.amazonaws.com/123456789012/orders", "orders", "us-east-1", "123456789012"],
    ["https://sqs-fips.us-gov-west-1.amazonaws.com/123456789012/orders", "orders", "us-gov-west-1", "123456789012"],
    ["https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders", "orders", "cn-north-1", "123456789012"],
    [
      "https://vpce-0a1b-2c.sqs.eu-west-1.vpce.amazonaws.com/123456789012/orders",
      "orders",
      "eu-west-1",
      "123456789012"
    ],
    ["http://localhost:9324/000000000000/orders", "orders", undefined, "000000000000"]
  ] as const)("%s is %s", (queue, name, region, account) =>
    assert.deepStrictEqual(Result.getOrThrow(Names.parse(queue)), {
      name,
      region,
      account,
      fifo: name.endsWith(".fifo")
    })
  )

  it.each([
    ["", "the name is empty"],
    [".fifo", "the name is empty"],
    ["orders/eu", "SQS refuses characters"],
    ["orders eu", "SQS refuses characters"],
    ["örders", "SQS refuses characters"],
    ["a".repeat(81), "has 81 characters, SQS allows 80"],
    [`${"a".repeat(74)}.fifo.dlq`, "has 83 characters"]
  ])("%j is refused: %s", (queue, detail) => {
    const refused = Names.parse(queue)
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      assert.strictEqual(refused.failure.reason, "Unsupported")
      assert.include(refused.failure.detail, detail)
    }
  })

  it("is legal on SQS, or refused; and its dead letters' queue is of its kind", () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "B", "-", "_", ".", ".fifo", "/", "é"), maxLength: 30 }),
        (queue) => {
          const [work, letters] = [Names.parse(queue), Names.parse(`${queue}.dlq`)]
          if (Result.isFailure(work) || Result.isFailure(letters)) return
          assert.match(work.success.name, /^[A-Za-z0-9_-]{1,80}(\.fifo)?$/)
          assert.isAtMost(work.success.name.length, 80)
          assert.strictEqual(work.success.fifo, work.success.name.endsWith(".fifo"))
          assert.strictEqual(letters.success.fifo, work.success.fifo)
          assert.notStrictEqual(letters.success.name, work.success.name)
        }
      )
    ))
})
