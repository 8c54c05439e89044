/** Scenarios in files: what was written is read again, and nothing else is. */
import { describe, expect, it } from "vitest"
import * as Generate from "../src/Generate.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as ScenarioFile from "../src/ScenarioFile.ts"
import * as Simulation from "../src/Simulation.ts"
import * as Regression from "./regressions/Regression.ts"

const plain = (scenario: Scenario): unknown => JSON.parse(JSON.stringify(scenario))

it("reads what it wrote: scenarios of all kinds, and those that were shrunk", () => {
  const all = Array.from({ length: 1500 }, (_, index) => Generate.scenario(index + 1))
  for (const scenario of [...all, ...Regression.all().map((each) => each.scenario)]) {
    expect(ScenarioFile.read(ScenarioFile.write(scenario))).toEqual(plain(scenario))
  }
})

describe("refuses", () => {
  const good: any = JSON.parse(ScenarioFile.write(Generate.scenario(2, ["sqs"]))) // It is changed at will.
  const refusal = (change: (scenario: any) => void): string => {
    // As above.
    const scenario = structuredClone(good)
    change(scenario)
    try {
      ScenarioFile.read(JSON.stringify(scenario))
    } catch (error) {
      return String(error)
    }
    return "nothing"
  }

  it.each<[string, (scenario: any) => void, string]>([
    // As above.
    ["no format", (it) => delete it.format, "format: "],
    ["another format", (it) => (it.format = 2), "format: "],
    ["an unknown name", (it) => (it.latancy = 5), "latancy: unknown key; known are "],
    ["an unknown kind", (it) => (it.kind = "pull"), "kind: "],
    ["a missing list", (it) => delete it.processes, "processes: "],
    ["no version", (it) => (it.versions = []), "versions: "],
    ["text for a number", (it) => (it.versions[0].maxAttempts = "3"), "versions[0].maxAttempts: "],
    ["no attempt", (it) => (it.versions[0].maxAttempts = 0), "versions[0].maxAttempts: "],
    ["no concurrency", (it) => (it.versions[0].concurrency = 0), "versions[0].concurrency: "],
    ["a rate of more than all", (it) => (it.rates.cut = 2), "rates.cut: "],
    ["a clock that stands still", (it) => (it.processes[0].clock.speed = 0), "processes[0].clock.speed: "],
    ["a time before the world", (it) => (it.calmAt = -1), "calmAt: "],
    ["a lease of no time", (it) => (it.lease = 0), "lease must be at least 1000"],
    [
      "no such version",
      (it) => (it.processes[0].versions = [9]),
      "processes[0].versions[0] must be an index of versions"
    ],
    ["two messages of one key", (it) => it.sendings.push(it.sendings[0]), "sendings: each key must be unique"],
    ["an unknown operation", (it) => (it.operations = [{ at: 5, what: { _tag: "Drop" } }]), "operations[0].what"],
    [
      "a refusal of no message",
      (it) => (it.refusals = [{ key: 77, of: "copy", until: 5, reason: "Unroutable" }]),
      "refusals[0].key must be that of a sending, got 77"
    ]
  ])("%s", (_, change, message) => {
    const refused = refusal(change)
    expect(refused.slice(0, 22 + message.length)).toBe(`RangeError: scenario: ${message}`)
  })

  it("what is no JSON", () => {
    expect(() => ScenarioFile.read("{")).toThrow(/^scenario: it must be JSON/)
    expect(() => ScenarioFile.read("null")).toThrow(/^scenario: /)
  })
})

it("a program that cannot start is an error, not a world that goes round", async () => {
  const scenario = Generate.scenario(2, ["rabbitmq"])
  const versions = scenario.versions.map((version) => ({ ...version, deadLetter: "work" }))
  await expect(Simulation.run({ ...scenario, versions })).rejects.toMatchObject({ _tag: "ConfigurationError" })
})
