import { assert, describe, it } from "@effect/vitest"
import * as Outage from "../../src/explain/Outage.ts"
import * as OutageReport from "../../src/explain/OutageReport.ts"

describe("a report", () => {
  it("has the range of many outages, and the course of the first", () => {
    const scenario = Outage.scenario({}, { rate: 10, outage: 10_000, handlerTime: 100, seed: 1 })
    if ("field" in scenario) throw new Error(scenario.detail)
    const outcomes = [1, 2, 3].map((seed) => Outage.run({ ...scenario, seed }))
    const report = OutageReport.make(scenario, outcomes)
    assert.deepInclude(report, { rounds: 3, cut: 0, unrecovered: 0, length: 10_000, share: 1 })
    assert.deepStrictEqual(report.backlog.values, outcomes[0]!.backlog)
    assert.deepStrictEqual(report.backlog.runs, outcomes[0]!.load)
    const counts = outcomes.map(({ retries }) => retries).toSorted((a, b) => a - b)
    assert.deepStrictEqual(report.retries, { low: counts[0]!, median: counts[1]!, high: counts[2]! })
    assert.isAtLeast(report.peakLoad.median, 10)
  })
})
