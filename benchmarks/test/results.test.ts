import { assert, describe, it } from "vitest"
import type { Measured } from "../src/interleave.ts"
import * as Plot from "../src/plot.ts"
import * as Report from "../src/report.ts"
import * as Results from "../src/results.ts"
import type { Case, Suite } from "../src/Suite.ts"

const entry = (name: string) => ({ name, contender: "x", workload: "y" })

/** CPU of each round, in milliseconds, for 1,000 messages. */
const measured = (name: string, cpu: ReadonlyArray<number>, isControl = false): Measured => ({
  entry: entry(name),
  isControl,
  error: cpu.length === 0 ? "Error: no\n  at all" : undefined,
  readings: cpu.map((cpuMilliseconds) => ({
    messages: 1000,
    milliseconds: 100,
    cpuMilliseconds,
    heapPeakMegabytes: 10,
    residentPeakMegabytes: 50,
    figures: { late: cpuMilliseconds }
  }))
})

const one: Case = { name: "case", messages: 1000, warmUp: 0, job: {}, entries: [entry("raw")] }
const suite = (limits: Suite["limits"]): Suite => ({
  name: "suite",
  summary: "",
  byDefault: true,
  venue: undefined,
  rounds: 3,
  cases: () => [one],
  ...(limits === undefined ? {} : { limits })
})
const rounds = [
  measured("raw", [10, 12, 11]),
  measured("requeue", [20, 22, 24]),
  measured("broken", []),
  measured("raw, again", [10, 12, 11], true)
]

describe("results", () => {
  it("compare with the baseline, and leave out who failed", () => {
    const { failed, isDisturbed, lines } = Results.of(suite(undefined), one, rounds)
    assert.deepStrictEqual(
      lines.map(({ cpuMicroseconds, cpuRatio, name }) => [name, cpuMicroseconds.median, cpuRatio.median]),
      [
        ["raw", 11, 1],
        ["requeue", 22, 2],
        ["raw, again", 11, 1]
      ]
    )
    assert.deepStrictEqual([failed.map(({ name }) => name), isDisturbed], [["broken"], false])
  })

  it("a limit is reached by a ratio, and by one that could not do it", () => {
    const beyond = (limits: Suite["limits"]) => Results.of(suite(limits), one, rounds).beyond
    assert.deepStrictEqual(beyond({ requeue: 2.1 }), [])
    assert.deepStrictEqual(beyond({ requeue: 2, broken: 9 }), ["requeue", "broken"])
  })

  it("no baseline, no result", () => {
    assert.throws(() => Results.of(suite(undefined), one, [measured("raw", []), ...rounds.slice(1)]), "no")
  })

  it("as text: a line for each, what failed and why, and that the machine was not quiet", () => {
    const noisy = [...rounds.slice(0, 3), measured("raw, again", [20, 20, 20], true)]
    const text = Report.caseText(Results.of(suite({ requeue: 1 }), one, noisy))
    assert.match(text, /requeue +22\.0 us +2\.00 \(1\.83 to 2\.18\) +11\.0 us +10,000/)
    assert.match(text, /broken could not: Error: no$/m)
    assert.match(text, /The control is off/)
    assert.match(text, /requeue is not within its limit/)
  })

  it("as a picture: a bar for each, with names that may hold anything", () => {
    const odd = [measured("a < b & c", [1, 1, 1]), ...rounds.slice(1)]
    const svg = Plot.cpu(Results.of(suite(undefined), one, odd))
    assert.include(svg, "a &lt; b &amp; c")
    assert.strictEqual(svg.match(/<rect x=/g)?.length, 3)
  })
})
