/** What a consumer backoff costs while attempts fail at random, and what it saves in an outage. The recipe has the figures. */
import { Workload } from "@requeue/conformance"
import { ConsumerBackoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { assert, beforeAll, describe, test } from "vitest"
import { queue, run } from "./faultyBroker.ts"

/** 1,000 messages, ten at a time, 30 ms each: 3 seconds without a failure. */
const ids = Workload.ids(1000)
const [concurrency, handlerTime] = [10, 30]
const outage = 60_000
const seeds = [1, 2, 3]

/** Numbers from 0 to 1 that are the same for the same seed. */
const draws = (seed: number) => {
  let state = seed
  return (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Cost {
  /** Seconds until all messages are done. */
  readonly seconds: number
  /** Attempts that failed. */
  readonly failures: number
}

/** The cost with attempts of which this share fails, for a while or until the end. */
const costOf = (
  consumerBackoff: ConsumerBackoff.ConsumerBackoff,
  share: number,
  seed: number,
  until = Number.POSITIVE_INFINITY
): Promise<Cost> =>
  run(
    ids,
    ({ now, start, untilEnded }) =>
      Effect.gen(function* () {
        const draw = draws(seed)
        const retry = RetryPolicy.make({ maxRetries: "unlimited" })
        const began = now()
        let failures = 0
        yield* start(queue, { retry, concurrency, consumerBackoff }, () =>
          Effect.flatMap(Effect.sleep(handlerTime), () => {
            if (now() - began >= until || draw() >= share) return Effect.void
            failures++
            return Effect.fail("down")
          })
        )
        yield* untilEnded()
        return { seconds: (now() - began) / 1000, failures }
      }),
    { seed: String(seed) }
  )

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** The mean time until all messages are done, in seconds. */
const secondsOf = async (policy: ConsumerBackoff.ConsumerBackoff, share: number): Promise<number> => {
  const found: Array<number> = []
  for (const seed of seeds) found.push((await costOf(policy, share, seed)).seconds)
  return mean(found)
}

const policies = {
  off: ConsumerBackoff.off,
  consecutive: ConsumerBackoff.consecutive(),
  ratio: ConsumerBackoff.ratio(),
  nsq: ConsumerBackoff.nsq()
}

type Name = keyof typeof policies
const names = Object.keys(policies) as ReadonlyArray<Name>

const shares = [0.01, 0.05, 0.2, 0.5] as const

interface Row {
  /** By share. */
  readonly seconds: ReadonlyArray<number>
  readonly outage: Cost
}

const rowOf = async (name: Name): Promise<Row> => {
  const seconds: Array<number> = []
  for (const share of shares) seconds.push(await secondsOf(policies[name], share))
  return { seconds, outage: await costOf(policies[name], 1, 1, outage) }
}

const time = (seconds: number): string =>
  seconds < 120
    ? `${seconds.toFixed(0)} s`
    : seconds < 7200
      ? `${(seconds / 60).toFixed(1)} min`
      : `${(seconds / 3600).toFixed(1)} h`

const lineOf = (name: Name, { outage, seconds }: Row): string =>
  [`\`${name}\``, ...seconds.map(time), outage.failures.toFixed(0), time(outage.seconds)].join(" | ")

describe("the costs of each form", () => {
  let rows: Readonly<Record<Name, Row>>
  beforeAll(async () => {
    const found: Array<readonly [Name, Row]> = []
    for (const name of names) found.push([name, await rowOf(name)])
    rows = Object.fromEntries(found) as Record<Name, Row> // It has all names.
  }, 120_000)

  test("are those in the recipe", () => {
    const recipe = readFileSync(new URL("../../../docs/recipes.md", import.meta.url), "utf8")
    for (const name of names) assert.include(recipe, `| ${lineOf(name, rows[name])} |`)
  })

  test("are least for the form of `true`, where 1, 5, 20 or 100 % of the attempts fail", () => {
    assert.strictEqual(ConsumerBackoff.make().form, "consecutive")
    const { consecutive, nsq, off, ratio } = rows
    for (const index of [0, 1, 2]) {
      const [own, ...others] = [consecutive, off, ratio, nsq].map(({ seconds }) => seconds[index]!)
      for (const other of others) assert.isAtMost(own!, other)
      assert.isAbove(nsq.seconds[index]!, 5 * own!)
    }
    assert.isBelow(consecutive.outage.failures, ratio.outage.failures)
    assert.isBelow(consecutive.outage.failures, off.outage.failures / 500)
    // The failures that it waits for are all that it costs beside the form that waits for none.
    assert.isAtMost(consecutive.outage.failures, nsq.outage.failures + 10)
    for (const { outage } of [ratio, nsq]) assert.isAtMost(consecutive.outage.seconds, outage.seconds)
  })
})
