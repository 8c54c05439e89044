/** Shrinking: as few events as break the law, also where no single one can be left out. */
import { expect, it } from "vitest"
import * as Generate from "../src/Generate.ts"
import * as Shrink from "../src/Shrink.ts"
import type { Scenario } from "../src/Scenario.ts"

const check =
  (breaks: (scenario: Scenario) => boolean): Shrink.Check =>
  (scenario) =>
    Promise.resolve({ law: breaks(scenario) ? "lost" : undefined, history: [] })

const drawn = Generate.scenario(8)
const sendings = Array.from({ length: 40 }, (_, index) => ({ ...drawn.sendings[0]!, key: index + 1, runs: [] }))
const many: Scenario = { ...drawn, sendings, operations: [], refusals: [], processes: drawn.processes.slice(0, 1) }

it("leaves out what is not needed", async () => {
  const small = await Shrink.shrink(
    many,
    "lost",
    check(({ sendings: all }) => all.some(({ key }) => key === 17))
  )
  expect(small.sendings.map(({ key }) => key)).toEqual([17])
})

it("leaves out two parts at once where neither can go alone", async () => {
  // Seven parts are left out only together with their other halves.
  const breaks = ({ sendings: all }: Scenario): boolean => {
    const keys = new Set(all.map(({ key }) => key))
    return [...keys].every((key) => keys.has(key <= 20 ? key + 20 : key - 20)) && keys.has(1)
  }
  expect(Shrink.size(await Shrink.shrink(many, "lost", check(breaks)))).toBeLessThanOrEqual(20)
})

it("leaves out a part that makes a fault happen one time later", async () => {
  const fault = (nth: number): string => `cut a1 consume work up ${nth}`
  const breaks = ({ only = [], sendings: all }: Scenario): boolean => only[0] === fault(all.length) && all.length >= 12
  const scenario = { ...many, only: [fault(40)] }
  const faults: Shrink.Check = async (it) => ({
    ...(await check(breaks)(it)),
    history: [{ _tag: "Fault", site: fault(40), kind: "cut", at: 0 }]
  })
  expect(Shrink.size(await Shrink.shrink(scenario, "lost", faults))).toBeLessThanOrEqual(20)
})

it("says that the scenario does not break the law", async () => {
  await expect(
    Shrink.shrink(
      drawn,
      "lots",
      check(() => true)
    )
  ).rejects.toThrow(new RangeError("Shrink.shrink: law must be the first that the scenario breaks, lost, got lots"))
  await expect(
    Shrink.shrink(
      drawn,
      "lost",
      check(() => false)
    )
  ).rejects.toThrow("breaks, none, got lost")
})
