/** Every topology on the real server: a message with delays of all sorts comes at its times. */
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import { assert, describe, test, vi } from "vitest"
import type { RabbitMqOptions } from "../src/index.ts"
import { isAtLeast } from "../src/internal/version.ts"
import { shared } from "./server.ts"
import { drainIds, on, outgoing, queueName, until } from "./world.ts"

vi.setConfig({ testTimeout: 60_000 })

const one = await shared()

/** Fails twice by the policy, once with a delay of the handler's own, and then for good. */
const life = async (options: RabbitMqOptions.Options, slack: number) => {
  const queue = queueName(String(options.topology))
  const at: Array<number> = []
  const attempts: Array<number> = []
  const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.linear(500) })
  await on({ url: one.url, ...options }, (broker) =>
    Effect.gen(function* () {
      yield* Consumer.start<string>(queue, { retry }, (message) => {
        at.push(Date.now())
        attempts.push(message.attempts)
        if (message.attempts === 3) return message.retry({ delay: 730 })
        return Effect.fail(new Error("no"))
      })
      yield* broker.publish([outgoing(queue, "a", { delay: 600 })])
      at.push(Date.now())
      yield* until("four runs", () => at.length === 5, 20_000)
      yield* Effect.sleep(500)
    })
  )
  assert.deepStrictEqual(attempts, [1, 2, 3, 4])
  assert.deepStrictEqual(await drainIds(one.url, `${queue}.dlq`), ["a"])
  for (const [index, delay] of [600, 500, 1000, 730].entries()) {
    const took = at[index + 1]! - at[index]!
    // The first was sent before its time was taken.
    assert.isAtLeast(took, index === 0 ? delay - 20 : delay, `delay ${index + 1}`)
    assert.isAtMost(took, delay + slack, `delay ${index + 1}`)
  }
}

describe("a life through", () => {
  test("the ladder", () => life({ topology: "ladder" }, 300))
  test("the levels", () => life({ topology: "levels" }, 300))
  test("per-message TTL, of each queue's own", () => life({ topology: "perMessageTtl" }, 300))
  test("per-message TTL, shared", () => life({ topology: "perMessageTtlShared" }, 300))
  test("a queue per delay", () => life({ topology: "perDelayQueue" }, 1300))
  test("rounds of a waiting queue", () => life({ topology: "waitLoop" }, 1300))
  test("the ladder of classic queues", () => life({ topology: "ladder", queueType: "classic" }, 300))
  test("the levels of classic queues", () => life({ topology: "levels", queueType: "classic" }, 300))
  test.runIf(isAtLeast(one.version, "4.3"))("the queue's own delays", async () => {
    // The message is sent before the policy is known, so that its queue must be there.
    await life({ topology: "native" }, 300)
  })
})
