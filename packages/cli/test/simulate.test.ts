import { assert, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

interface Simulated {
  readonly schedule: ReadonlyArray<{ readonly retry: number; readonly delay: readonly [number, number] }>
  readonly handlerRuns: number
  readonly worstCase: number | "unlimited"
  readonly outage: {
    readonly rounds: number
    readonly deadLetters: { readonly median: number }
    readonly consumerBackoff: string
  }
}

const simulate = async (...args: ReadonlyArray<string>): Promise<Simulated> => {
  const { code, stderr, stdout } = await requeue(["simulate", "--json", ...args])
  assert.deepStrictEqual([code, stderr], [0, ""])
  return JSON.parse(stdout) as Simulated
}

describe("requeue simulate", () => {
  it("has the schedule as a value", async () => {
    const { handlerRuns, schedule, worstCase } = await simulate("--policy", "nsqRequeue")
    assert.deepStrictEqual(
      schedule.map(({ delay }) => delay[1]),
      [90_000, 180_000, 270_000, 360_000]
    )
    assert.deepStrictEqual([handlerRuns, worstCase], [5, 900_000])
  })

  it("writes what has no end in words", async () => {
    assert.strictEqual((await simulate("--policy", '{"maxRetries":"unlimited"}')).worstCase, "unlimited")
  })

  it("simulates as many outages as it is told, each time the same", async () => {
    const asked = ["--policy", "cloudflareQueues", "--outage", "20s", "--rounds", "3", "--seed", "9"]
    const { outage } = await simulate(...asked)
    assert.strictEqual(outage.rounds, 3)
    assert.isAbove(outage.deadLetters.median, 0)
    assert.deepStrictEqual((await simulate(...asked)).outage, outage)
  })

  it.each(["nsq", "consecutive", "ratio"])("simulates consumer backoff of the form %s", async (form) => {
    const asked = ["--policy", "cloudflareQueues", "--outage", "1m", "--rounds", "3", "--consumer-backoff"]
    const [off, on] = [await simulate(...asked, "off"), await simulate(...asked, form)]
    assert.deepStrictEqual([off.outage.consumerBackoff, on.outage.consumerBackoff], ["off", form])
    assert.isBelow(on.outage.deadLetters.median, off.outage.deadLetters.median / 10)
  })

  it.each<readonly [ReadonlyArray<string>, RegExp]>([
    [[], /^requeue: no policy is given\. Give --policy or --queue$/],
    [["--policy", "nsqRequeue", "--outage", "5q"], /--outage: "5q"\. It must be a duration up to 1d/],
    [["--policy", "nsqRequeue", "--outage", "0s"], /--outage: "0s"\. It must be a duration/],
    [["--policy", "nsqRequeue", "--outage", "1m", "--rate", "0"], /--rate: "0"\. It must be a number above 0/],
    [["--policy", "nsqRequeue", "--outage", "1m", "--rounds", "0"], /--rounds: "0"\. It must be a whole number from 1/],
    [
      ["--policy", "nsqRequeue", "--outage", "1m", "--concurrency", "1"],
      /cannot keep up with 10 messages a second\. Set concurrency above 1/
    ],
    [["--policy", "nsqRequeue", "--outage", "1d", "--rate", "100"], /too many to simulate\. Simulate a lower rate/]
  ])("refuses %j", async (args, message) => {
    const { code, stderr } = await requeue(["simulate", ...args])
    assert.strictEqual(code, 2)
    assert.match(stderr.trimEnd(), message)
  })
})
