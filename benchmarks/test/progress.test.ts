import { assert, it } from "vitest"
import * as Progress from "../src/progress.ts"
import type { Case } from "../src/Suite.ts"

const one = (name: string): Case => ({
  name,
  messages: 1,
  warmUp: 0,
  job: {},
  entries: [{ name: "raw", contender: "x", workload: "y" }]
})

it("counts rounds that come because a control is off, and goes on with the next case", () => {
  const lines: Array<string> = []
  const plan = [{ suite: { name: "suite" }, cases: [one("a"), one("b")], rounds: 2 }]
  const progress = Progress.make(plan, (line) => lines.push(line))
  for (const round of [1, 2, 3]) progress.next(`a ${round}`)
  progress.settled()
  progress.next("b 1")
  const counts = lines.map((line) => /^\[(\d+\/\d+)/.exec(line)?.[1])
  assert.deepStrictEqual(counts, ["1/4", "2/4", "3/5", "4/5"])
  assert.match(lines[3]!, /suite: b 1$/)
})
