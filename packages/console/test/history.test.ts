/** What is seen of a queue over time: samples of the last 15 minutes, and the lines that show them. */
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { RetryPolicy } from "@requeue/core"
import { QueueStatus } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { spark } from "../src/internal/pages/spark.ts"
import * as History from "../src/internal/work/history.ts"

const status = Effect.runSync(
  Effect.flatMap(MemoryBroker.make(), (broker) =>
    QueueStatus.of(broker, { queue: "orders", retry: RetryPolicy.make() })
  ).pipe(Effect.scoped)
)

type Seen = readonly [at: number, ready: number | undefined]

const historyOf = (seen: ReadonlyArray<Seen>): ReadonlyArray<History.Sample> =>
  seen.reduce<ReadonlyArray<History.Sample>>((all, [at, ready]) => History.add(all, { ...status, ready }, at), [])

const seen = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 3_600_000 }), fc.option(fc.nat(1_000_000), { nil: undefined })), {
    minLength: 1
  })
  .map((all) => all.toSorted(([a], [b]) => a - b))

describe("samples of a queue", () => {
  it("are one for each step, the last one, and none is older than 60 steps", () => {
    fc.assert(
      fc.property(seen, (all) => {
        const samples = historyOf(all)
        const steps = samples.map(({ step }) => step)
        const last = Math.floor(all.at(-1)![0] / History.step)
        const wanted = new Map(all.map(([at, ready]) => [Math.floor(at / History.step), ready]))
        assert.deepStrictEqual(
          samples.map(({ ready, step }) => [step, ready]),
          [...wanted].filter(([step]) => step > last - History.steps)
        )
        assert.isAtMost(steps.length, History.steps)
      })
    )
  })
})

describe("a sparkline", () => {
  const xs = (text: string) =>
    [...text.matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)])

  it("stays within its picture, whatever was seen", () => {
    fc.assert(
      fc.property(seen, (all) => {
        const { text } = spark(historyOf(all), "ready")
        assert.isTrue(xs(text).every(([x, y]) => x! >= 0 && x! < History.steps && y! >= 1 && y! <= 15))
        assert.isBelow(text.length, 1500)
      })
    )
  })

  it("says in words what it shows", () => {
    const at = (step: number) => step * History.step
    const { text } = spark(
      historyOf([
        [at(1), 4],
        [at(2), 1200],
        [at(5), 2]
      ]),
      "ready"
    )
    assert.include(text, "<title>from 4 to 2 in 1m, 1,200 at most</title>")
    // Nobody has seen what was between the second and the third.
    assert.match(text, /d="M55 15h1L56 1h1M59 15h1"/)
    assert.include(
      spark(
        historyOf([
          [at(1), 7],
          [at(9), 7]
        ]),
        "ready"
      ).text,
      "<title>7 for 2m</title>"
    )
  })

  it("is empty, and has its room, before there are two samples", () => {
    assert.match(
      spark(historyOf([[0, 7]]), "ready").text,
      /^<svg class="spark" viewBox="0 0 60 16" aria-hidden="true">/
    )
    assert.include(
      spark(
        historyOf([
          [0, undefined],
          [99_999, undefined]
        ]),
        "ready"
      ).text,
      "aria-hidden"
    )
  })
})
