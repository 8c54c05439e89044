import { Backoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { clean, stale } from "../../src/clean.ts"
import { RabbitMqOperator } from "../../src/index.ts"
import { shared } from "../real/server.ts"
import { on, outgoing, queueName } from "../world.ts"

const one = await shared()
const options = { url: one.url, management: one.broker.managementUrl ?? "http://127.0.0.1:15672" }

describe.runIf(one.broker.managementUrl !== undefined)("an operator", () => {
  test("sees how a queue is set up", async () => {
    const queue = queueName("operated")
    const retry = RetryPolicy.make({ backoff: Backoff.constant(123_456) })
    const listener = { onDelivery: () => {}, onReconnect: () => {} }
    await on(options, (broker) => broker.subscribe({ queue, retry, deadLetterQueues: [`${queue}.dlq`], ...listener }))
    const findings = await Effect.runPromise(RabbitMqOperator.verify(queue, options))
    assert.deepStrictEqual(
      findings.filter(({ isGood }) => !isGood),
      []
    )
  })

  test("needs the management interface", async () => {
    const error = await Effect.runPromise(Effect.flip(RabbitMqOperator.verify("q", { url: one.url })))
    assert.strictEqual("field" in error && error.field, "management")
  })
})

test("without the management interface, lists the queues of usual names, and removes nothing", async () => {
  const queue = queueName("listed")
  const requests = [{ queue, retry: RetryPolicy.make() }]
  await on({ url: one.url, topology: "waitLoop" }, (broker) =>
    broker.publish([outgoing(queue, "a", { delay: 60_000 })])
  )
  const { notes, objects } = await Effect.runPromise(stale(requests, { url: one.url }))
  assert.deepStrictEqual(
    objects.map(({ messages, name }) => [name, messages]),
    [[`${queue}.waiting.v1`, 0]]
  )
  assert.match(notes.join(), /without the option management/)
  const error = await Effect.runPromise(Effect.flip(clean(requests, { url: one.url })))
  assert.strictEqual("field" in error && error.field, "management")
})

describe("a queue", () => {
  test.each([
    [undefined, "4.3.0", ["queue"]],
    [{}, "3.13.0", ["queue", "dead letters"]],
    [{ "x-queue-type": "quorum" }, "4.1.0", ["delivery limit", "dead letters"]],
    [{ "x-queue-type": "quorum" }, "3.13.0", ["dead letters"]],
    [{ "x-queue-type": "quorum", "x-delivery-limit": 29 }, "4.1.0", ["delivery limit", "dead letters"]],
    [{ "x-queue-type": "quorum", "x-delivery-limit": -1 }, "4.1.0", ["dead letters"]],
    [{ "x-queue-type": "quorum", "x-delivery-limit": 30, "x-dead-letter-exchange": "x" }, "4.1.0", ["dead letters"]]
  ] as const)("with arguments %j on %s, where 30 deliveries are reckoned with, is wrong about %j", (...given) => {
    const [args, version, wrong] = given
    const info = args && { name: "q", arguments: args, policy: {}, messages: 0, unacknowledged: 0 }
    const bad = RabbitMqOperator.findingsOf(info, version, 30).filter(({ isGood }) => !isGood)
    assert.deepStrictEqual(
      bad.map(({ about }) => about),
      [...wrong]
    )
  })
  test("has the smaller limit of its arguments and its policy", () => {
    const args = { "x-queue-type": "quorum", "x-delivery-limit": 1000 }
    const info = { name: "q", arguments: args, policy: { "delivery-limit": 5 }, messages: 0, unacknowledged: 0 }
    const finding = RabbitMqOperator.findingsOf(info, "4.1.0", 1000).find(({ about }) => about === "delivery limit")
    assert.match(finding?.detail ?? "", /^5, but the plan assumes 1000/)
  })
})
