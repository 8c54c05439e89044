/** What health reports tell of SQS while it answers, and does nothing. */
import type { StrictSqs } from "@requeue/brokers"
import { Consumer, Health } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { consume, on, outgoing, queueName, until, type Run } from "../real/world.ts"

const { another } = await strict()

const forEver = { times: Number.POSITIVE_INFINITY }
const receives = { ...forEver, action: "ReceiveMessage" }

describe.concurrent("a consumer is down, says why, and goes on, where", () => {
  test.each<[name: string, because: RegExp, ask: (proxy: StrictSqs) => { readonly end: () => void }]>([
    ["every call answers 500", /InternalFailure/, ({ fail }) => fail(forEver, "InternalFailure")],
    ["every call answers 503", /ServiceUnavailable/, ({ fail }) => fail(forEver, "ServiceUnavailable")],
    ["every call is throttled", /RequestThrottled/, ({ fail }) => fail(forEver, "RequestThrottled")],
    ["receives answer 500", /InternalFailure/, ({ fail }) => fail(receives, "InternalFailure")],
    ["receives are throttled", /ThrottlingException/, ({ fail }) => fail(receives, "ThrottlingException")],
    ["receives get no answer", /Timeout/, ({ ignore }) => ignore(receives)]
  ])("%s", async (_, because, ask) => {
    await using own = await another()
    await on({ url: own.url, requestTimeout: 1000 }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("away")
        const runs: Array<Run> = []
        const consumer = yield* consume(queue, runs)
        const fault = ask(own)
        yield* until("down", () => consumer.health().state === "down")
        const health = yield* Health.check([consumer])
        assert.match(health.consumers[0]!.trouble!.because, because)
        assert.deepStrictEqual([Health.isReady(health), Health.isLive(health)], [false, true])
        fault.end()
        yield* until("running", () => consumer.health().state === "running")
        yield* broker.publish([outgoing(queue, "m1")])
        yield* until("handled", () => runs.length === 1)
        assert.isTrue(Health.isReady(yield* Health.check([consumer])))
      })
    )
  })
})

test.concurrent("one failure of a moment is no trouble", async () => {
  await using own = await another()
  await on({ url: own.url }, () =>
    Effect.gen(function* () {
      const consumer = yield* Consumer.start(queueName("moment"), {}, () => {})
      // The SDK makes three attempts of a call.
      const fault = own.fail({ action: "ReceiveMessage", times: 3 }, "InternalFailure")
      const seen = new Set<string>()
      yield* until("over", () => {
        seen.add(consumer.health().state)
        return fault.left() === 0 && (own.calls()["ReceiveMessage"] ?? 0) > 4
      })
      assert.deepStrictEqual([...seen], ["running"])
    })
  )
})
