/** Every topology on the real server: a message with delays of all sorts comes at its times. */
import { Backoff, Consumer, type Event, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { assert, describe, test, type TestContext } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { isAtLeast } from "../../src/internal/version.ts"
import { shared } from "../real/server.ts"
import { drainIds, measure, now, outgoing, queueName, quiet } from "../world.ts"

const one = await shared()

/** Fails twice by the policy, once with a delay of the handler's own, and then for good. */
const life = (context: TestContext, options: RabbitMqOptions.Options, bound: number) =>
  measure(context, { url: one.url, ...options }, (broker, control) =>
    Effect.gen(function* () {
      const queue = queueName(String(options.topology))
      const runs: Array<{ readonly attempts: number; readonly at: number }> = []
      const dead = yield* Deferred.make<void>()
      const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.linear(500) })
      const onEvent = ({ _tag }: Event.Event) => {
        if (_tag === "DeadLettered") Deferred.doneUnsafe(dead, Effect.void)
      }
      yield* Consumer.start<string>(queue, { retry, onEvent }, (message) => {
        const { attempts } = message
        runs.push({ attempts, at: now() })
        return attempts === 3 ? message.retry({ delay: 730 }) : Effect.fail(new Error("no"))
      })
      const sent = now()
      yield* broker.publish([outgoing(queue, "a", { delay: 600 })])
      const accepted = now()
      yield* Deferred.await(dead)
      yield* quiet(broker)
      assert.deepStrictEqual(
        runs.map(({ attempts }) => attempts),
        [1, 2, 3, 4]
      )
      assert.deepStrictEqual(yield* Effect.promise(() => drainIds(one.url, `${queue}.dlq`)), ["a"])
      const arrivals = [600, 500, 1000, 730].map((delay, index) => {
        const { at } = runs[index]!
        const from = runs[index - 1]?.at ?? sent
        assert.isAtLeast(at - from, delay, `delay ${index + 1}`)
        // The time that the first publish takes to declare queues is no part of the delay.
        const late = Math.max(0, at - delay - (index === 0 ? accepted : from))
        return { what: `delay ${index + 1}`, late, bound, from, at }
      })
      yield* Control.check(control, arrivals)
    })
  )

describe.concurrent("a life through", () => {
  test("the ladder", (context) => life(context, { topology: "ladder" }, 300))
  test("the levels", (context) => life(context, { topology: "levels" }, 300))
  // Every second digit only, so a delay outside the policy may last twice as long.
  test("few levels", (context) => life(context, { maxOtherDelayQueues: 12 }, 1300))
  test("per-message TTL, of each queue's own", (context) => life(context, { topology: "perMessageTtl" }, 300))
  test("per-message TTL, shared", (context) => life(context, { topology: "perMessageTtlShared" }, 300))
  test("a queue per delay", (context) => life(context, { topology: "perDelayQueue" }, 1300))
  test("rounds of a waiting queue", (context) => life(context, { topology: "waitLoop" }, 1300))
  test("the ladder of classic queues", (context) => life(context, { topology: "ladder", queueType: "classic" }, 300))
  test("the levels of classic queues", (context) => life(context, { topology: "levels", queueType: "classic" }, 300))
  test.runIf(isAtLeast(one.version, "4.3"))("the queue's own delays", async (context) => {
    // The message is sent before the policy is known, so that its queue must be there.
    await life(context, { topology: "native" }, 300)
  })
})
