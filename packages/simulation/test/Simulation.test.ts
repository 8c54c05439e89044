/** Runs of the whole world. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import * as Generate from "../src/Generate.ts"
import { kinds } from "../src/Scenario.ts"
import * as Simulation from "../src/Simulation.ts"
import * as Story from "./Story.ts"

/** The histories of seeds, from a process of its own. */
const elsewhere = async (kind: string, seeds: ReadonlyArray<number>): Promise<ReadonlyArray<unknown>> => {
  const script = new URL("histories.ts", import.meta.url).pathname
  const args = ["--conditions=@requeue/source", script, kind, ...seeds.map(String)]
  const options = { env: { ...process.env, NODE_OPTIONS: "" }, maxBuffer: 2 ** 26 }
  const { stdout } = await promisify(execFile)(process.execPath, args, options)
  return stdout
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line))
}

describe("a run", () => {
  it("is the same whenever its scenario is the same, as that is written down and read, or with its faults named", async () => {
    for (let seed = 1; seed <= 28; seed++) {
      const scenario = Generate.scenario(seed, [kinds[seed % kinds.length]!])
      const first = await Simulation.run(scenario)
      assert.deepStrictEqual(await Simulation.run(JSON.parse(JSON.stringify(scenario))), first)
      const only = first.flatMap((entry) => (entry._tag === "Fault" ? [entry.site] : []))
      assert.deepStrictEqual(await Simulation.run({ ...scenario, only }), first)
    }
  })

  it("samples the health of processes that do not stand still", async () => {
    const processes = (millis: number) => [{ ...Story.process("a"), freezes: [{ at: 2000, for: millis }] }]
    const sampled = async (millis: number) => {
      const world = Story.scenario({ kind: "sqs", lease: 5000, sendings: [], processes: processes(millis) })
      const history = await Simulation.run({ ...world, calmAt: 3000 })
      return history.filter(({ _tag, at }) => _tag === "Health" && at < 9000).length
    }
    assert.deepStrictEqual([await sampled(1000), await sampled(7000)], [1, 0])
  })

  it.each(["sqs", "nsq", "rabbitmq", "sqlite"] as const)(
    "of the adapter %s is the same in another process",
    async (kind) => {
      const seeds = [11, 12, 13, 14, 15]
      const here: Array<unknown> = []
      for (const seed of seeds)
        here.push(JSON.parse(JSON.stringify(await Simulation.run(Generate.scenario(seed, [kind])))))
      assert.deepStrictEqual(await elsewhere(kind, seeds), here)
    }
  )
})
