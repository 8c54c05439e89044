import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { RabbitMqOperator } from "../src/index.ts"
import { shared } from "./server.ts"
import { on, queueName, until } from "./world.ts"

const one = await shared()
const options = { url: one.url, management: one.broker.managementUrl ?? "http://127.0.0.1:15672" }

describe.runIf(one.broker.managementUrl !== undefined)("an operator", () => {
  test("sees how a queue is set up, and takes away delays that nobody uses", async () => {
    const queue = queueName("operated")
    const retry = RetryPolicy.make({ backoff: Backoff.constant(123_456) })
    const listener = { onDelivery: () => {}, onReconnect: () => {} }
    await on(options, (broker) => broker.subscribe({ queue, retry, deadLetterQueues: [`${queue}.dlq`], ...listener }))
    const findings = await Effect.runPromise(RabbitMqOperator.verify(queue, options))
    assert.deepStrictEqual(
      findings.filter(({ isGood }) => !isGood),
      []
    )
    const name = "requeue.v1.q.delay.123456"
    // The server counts a new queue's messages some seconds later.
    const counted = until(`${name} among the idle delays`, async () => {
      const idle = await Effect.runPromise(RabbitMqOperator.idleDelays(options))
      return idle.includes(name)
    })
    await Effect.runPromise(counted)
    assert.deepStrictEqual(await Effect.runPromise(RabbitMqOperator.removeDelays([name], options)), [name])
    assert.notInclude(await Effect.runPromise(RabbitMqOperator.idleDelays(options)), name)
  })

  test("needs the management interface", async () => {
    const error = await Effect.runPromise(Effect.flip(RabbitMqOperator.verify("q", { url: one.url })))
    assert.strictEqual("field" in error && error.field, "management")
  })
})

describe("a queue", () => {
  test.each([
    [undefined, "4.3.0", ["queue"]],
    [{}, "3.13.0", ["queue", "dead letters"]],
    [{ "x-queue-type": "quorum" }, "4.1.0", ["delivery limit", "dead letters"]],
    [{ "x-queue-type": "quorum", "x-delivery-limit": 9, "x-dead-letter-exchange": "x" }, "4.1.0", ["dead letters"]]
  ] as const)("with arguments %j on %s is wrong about %j", (args, version, wrong) => {
    const info = args && { name: "q", arguments: args, messages: 0, unacknowledged: 0 }
    const bad = RabbitMqOperator.findingsOf(info, version).filter(({ isGood }) => !isGood)
    assert.deepStrictEqual(
      bad.map(({ about }) => about),
      [...wrong]
    )
  })
})
