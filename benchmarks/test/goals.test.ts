import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import * as Docs from "../src/docs.ts"
import * as Goal from "../src/Goal.ts"
import { all } from "../src/goals.ts"
import type { Measured } from "../src/interleave.ts"
import * as Results from "../src/results.ts"
import type { Case, Suite } from "../src/Suite.ts"
import { suites } from "../src/suites/index.ts"

const entry = (name: string) => ({ name, contender: "x", workload: "y" })

/** CPU of each round, in milliseconds, for 1,000 messages; a figure besides. */
const measured = (name: string, cpu: ReadonlyArray<number>, isControl = false): Measured => ({
  entry: entry(name),
  isControl,
  error: undefined,
  readings: cpu.map((cpuMilliseconds) => ({
    messages: 1000,
    milliseconds: 100,
    cpuMilliseconds,
    brokerCpuMilliseconds: 2 * cpuMilliseconds,
    heapPeakMegabytes: 10,
    residentPeakMegabytes: 50,
    figures: { late: cpuMilliseconds }
  }))
})

const suite: Suite = {
  name: "suite",
  summary: "",
  byDefault: true,
  venue: undefined,
  rounds: 3,
  cases: () => []
}

const resultOf = (name: string, ours: number, control = 10) => {
  const one: Case = { name, messages: 1000, warmUp: 0, job: {}, entries: [entry("raw")] }
  return Results.of(suite, one, [
    measured("raw", [10, 10, 10]),
    measured("ours", [ours - 1, ours, ours + 1]),
    measured("raw, again", [control, control, control], true)
  ])
}

const goal: Goal.Goal = {
  work: "work",
  suite: "suite",
  case: "case",
  contender: "ours",
  quantity: "cpu",
  against: "raw",
  limit: { atMost: 1.5 }
}

const round = (value: number) => Math.round(value * 100) / 100

describe("goals", () => {
  it("are met or missed by so much, over the range of the rounds", () => {
    const met = Goal.judge(goal, [resultOf("case", 15)])
    assert.deepStrictEqual([met.isMet, met.missedBy, met.counts], [true, 0, true])
    const missed = Goal.judge(goal, [resultOf("case", 18)])
    assert.deepStrictEqual(
      [missed.isMet, round(missed.missedBy), missed.value],
      [false, 0.2, { median: 1.8, min: 1.7, max: 1.9 }]
    )
    const atLeast = Goal.judge({ ...goal, limit: { atLeast: 2 } }, [resultOf("case", 16)])
    assert.deepStrictEqual([atLeast.isMet, round(atLeast.missedBy)], [false, 0.25])
  })

  it("compare what else was measured, or limit it as it is", () => {
    const of = (more: Partial<Goal.Goal>) => Goal.judge({ ...goal, ...more }, [resultOf("case", 18)]).value?.median
    assert.strictEqual(of({ quantity: "brokerCpu" }), 1.8)
    assert.strictEqual(of({ quantity: { figure: "late" } }), 1.8)
    const { against: _, ...alone } = { ...goal, quantity: { figure: "late" } }
    assert.strictEqual(Goal.judge(alone, [resultOf("case", 18)]).value?.median, 18)
  })

  it("take out what the same costs the other in another case", () => {
    const grown = { ...goal, basis: "before" }
    const { isMet, value } = Goal.judge(grown, [resultOf("case", 24), resultOf("before", 20)])
    assert.deepStrictEqual([value?.median, isMet], [1.2, true])
    assert.isFalse(Goal.judge(grown, [resultOf("case", 24)]).isMet)
  })

  it("are reached by another value as well", () => {
    const either = { ...goal, limit: { atMost: 1 }, or: { atMost: 20 } }
    assert.isTrue(Goal.judge(either, [resultOf("case", 18)]).isMet)
    assert.isFalse(Goal.judge({ ...either, or: { atMost: 0.017 } }, [resultOf("case", 18)]).isMet)
  })

  it("say nothing on a machine that is not quiet, and without a measurement", () => {
    assert.isFalse(Goal.judge(goal, [resultOf("case", 15, 11)]).counts)
    const memory = { ...goal, quantity: "resident" } as const
    assert.isTrue(Goal.judge(memory, [resultOf("case", 15, 11)]).counts)
    const none = Goal.judge(goal, [])
    assert.deepStrictEqual([none.value, none.isMet, none.counts], [undefined, false, false])
  })

  it("are settled when the control of all that they judge is good", () => {
    const isSettled = (goals: ReadonlyArray<Goal.Goal>, control: number) =>
      Goal.isSettled(resultOf("case", 15, control), goals)
    assert.deepStrictEqual([isSettled([goal], 10), isSettled([goal], 11)], [true, false])
    const memory = { ...goal, quantity: "resident" } as const
    assert.deepStrictEqual([isSettled([memory], 11), isSettled([memory, goal], 11)], [true, false])
    // Nothing is judged of this case, but its CPU is compared.
    const another = { ...goal, case: "another" }
    assert.deepStrictEqual([isSettled([another], 10), isSettled([another], 11)], [true, false])
    assert.isFalse(isSettled([{ ...another, basis: "case" }], 11))
  })

  it("name suites, cases and contenders that are there", () => {
    for (const { against, basis, case: name, contender, suite: of } of all) {
      const cases = suites.find((each) => each.name === of)?.cases((messages) => messages) ?? []
      for (const each of [name, basis ?? name]) {
        const names = cases.find((one) => one.name === each)?.entries.map((one) => one.name) ?? []
        assert.includeMembers(names, [contender, against ?? contender], `${of}: ${each}`)
      }
    }
  })
})

describe("the page", () => {
  const page =
    "before\n<!-- bench:suite -->\nold\n<!-- /bench:suite -->\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nafter\n"
  const result: Results.Result = {
    command: "npm run bench -- suite",
    at: "2026-01-02T03:04:05Z",
    environment: { node: "v1", system: "s", cpu: "c" },
    cases: [resultOf("case", 18, 12)]
  }

  it("has the tables of what is kept, and the rest as it was", () => {
    const made = Docs.render(page, [result])
    assert.match(
      made,
      /^before\n<!-- bench:suite -->\n\n`npm run bench -- suite`, 2026-01-02 03:04 UTC; node v1, cpu c\.\n/
    )
    assert.match(made, /\| ours \| 18\.0 us \| 1\.80 \(1\.70 to 1\.90\) \|/)
    assert.include(made, "**Does not count:**")
    assert.include(made, "<!-- bench:x -->\nold\n<!-- /bench:x -->\nafter\n")
    assert.strictEqual(Docs.render(made, [result]), made)
  })

  it("has a place for every suite that measures", () => {
    const kept = readFileSync(new URL("../RESULTS.md", import.meta.url), "utf8")
    for (const { name } of suites.filter((each) => each.name !== "guard")) {
      assert.match(kept, new RegExp(`<!-- bench:${name} -->[^]*<!-- /bench:${name} -->`), name)
    }
  })

  it("has every goal once", () => {
    const made = Docs.render("<!-- bench:goals -->\n<!-- /bench:goals -->", [result])
    assert.strictEqual(made.split("\n").filter((line) => line.includes("not measured")).length, all.length)
  })
})
