import { assert, describe, it } from "@effect/vitest"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"

describe("presets", () => {
  const [second, minute, hour] = [1000, 60_000, 3_600_000]
  const lows = (self: RetryPolicy.RetryPolicy) => RetryPolicy.schedule(self).map(({ delay: [low] }) => low)

  it("cloudflareQueues", () => assert.deepStrictEqual(lows(RetryPolicy.cloudflareQueues), [0, 0, 0]))

  it("nsqRequeue", () =>
    assert.deepStrictEqual(lows(RetryPolicy.nsqRequeue), [90 * second, 180 * second, 270 * second, 360 * second]))

  it("nsqRequeue is capped at 15 minutes", () =>
    assert.strictEqual(Backoff.delayAfter(RetryPolicy.nsqRequeue.backoff!, 11), 15 * minute))

  it("webhookSender, spread by a tenth", () => {
    const undisturbed = [5 * second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 10 * hour]
    const expected = undisturbed.map((delay) => [delay - delay / 10, delay + delay / 10])
    assert.deepStrictEqual(
      RetryPolicy.schedule(RetryPolicy.webhookSender).map(({ delay }) => [...delay]),
      expected
    )
  })

  it("rabbitMqGrowing", () =>
    assert.deepStrictEqual(
      lows(RetryPolicy.rabbitMqGrowing),
      [1000, 1500, 2250, 3375, 5063, 7594, 11_391, 17_086, 25_629, 38_444]
    ))
})
