/** The facts of worlds of the adapter for SQLite: what a world reports of its file. */
import { assert, describe, it } from "vitest"
import * as Checker from "../../src/check/Checker.ts"
import type { Entry } from "../../src/History.ts"
import type { Behaviour, Scenario } from "../../src/Scenario.ts"
import * as Simulation from "../../src/Simulation.ts"
import * as Story from "../Story.ts"

const sendingOf = (runs: ReadonlyArray<Behaviour>): Scenario["sendings"] => [{ ...Story.sending(1), at: 100, runs }]

/** What the broker does, in short. */
const show = (entry: Entry): string | undefined => {
  switch (entry._tag) {
    case "Stored":
      return `stored ${entry.queue}`
    case "HandedOut":
      return `handed to ${entry.process}`
    case "Back":
      return `back: ${entry.why}`
    case "Gone":
      return `gone: ${entry.why}`
    case "Committed":
      return `committed ${entry.acked.length} acks, ${entry.rows.length} rows, ${entry.sends.length} sends`
    case "Rebooted":
      return `rebooted without ${entry.rows.length} rows, ${entry.sends.length} sends`
    default:
      return undefined
  }
}

const run = async (changes: Story.Changes): Promise<ReadonlyArray<string>> => {
  const scenario = Story.scenario({ kind: "sqlite", lease: 5000, processes: [Story.process("a")], ...changes })
  const history = await Simulation.run(scenario)
  assert.deepStrictEqual(Checker.check(scenario, history), [])
  return history.flatMap((entry) => show(entry) ?? [])
}

const transaction = (ends: "commit" | "rollback" | "kill", takes = 0): Behaviour => ({
  takes: 0,
  within: { takes, ends }
})

describe("a world with a file reports", () => {
  it("a retry and a dead letter, each as a copy that replaces its original", async () => {
    const fails: Behaviour = { takes: 0, throws: "error" }
    const facts = await run({ sendings: sendingOf([fails, fails]), version: { maxAttempts: 2, backoff: [] } })
    assert.deepStrictEqual(facts, [
      "stored work",
      "handed to a1",
      "stored work",
      "gone: settled",
      "handed to a1",
      "stored work.dlq",
      "gone: settled"
    ])
  })

  it("a message whose process was killed, when its lease is over", async () => {
    const facts = await run({ sendings: sendingOf([{ takes: 0, kills: true }]) })
    assert.deepStrictEqual(facts, ["stored work", "handed to a1", "back: lease", "handed to a2", "gone: settled"])
  })

  it.each([0, 300])("a transaction that takes %i ms, and is committed", async (takes) => {
    const facts = await run({ sendings: sendingOf([transaction("commit", takes)]) })
    assert.deepStrictEqual(facts, [
      "stored work",
      "handed to a1",
      "gone: transaction",
      "committed 1 acks, 1 rows, 1 sends"
    ])
  })

  it.each([0, 300])("nothing of a transaction that takes %i ms, and is rolled back", async (takes) => {
    const facts = await run({ sendings: sendingOf([transaction("rollback", takes)]), version: { backoff: [] } })
    assert.deepStrictEqual(facts, [
      "stored work",
      "handed to a1",
      "stored work",
      "gone: settled",
      "handed to a1",
      "gone: settled"
    ])
  })

  it.each([0, 300])("nothing of a transaction that takes %i ms, and whose process is killed in it", async (takes) => {
    const facts = await run({ sendings: sendingOf([transaction("kill", takes)]) })
    assert.deepStrictEqual(facts, ["stored work", "handed to a1", "back: lease", "handed to a2", "gone: settled"])
  })

  it("a retry that is due at once although its process's clock is set back while it waits for a lock", async () => {
    const clock = { offset: 0, speed: 1, jumps: [{ at: 110, by: -3_600_000 }] }
    const facts = await run({
      processes: [{ ...Story.process("a"), clock }],
      sendings: sendingOf([{ takes: 0, throws: "error" }]),
      version: { backoff: [] },
      only: ["busy a1 begin 2"]
    })
    assert.deepStrictEqual(facts, [
      "stored work",
      "handed to a1",
      "stored work",
      "gone: settled",
      "handed to a1",
      "gone: settled"
    ])
  })

  it("what a power cut undoes: an ack, and no transaction", async () => {
    const { sendings } = Story.scenario()
    const facts = await run({
      // This seed's programs sync each commit.
      seed: 2,
      sendings: [
        { ...sendings[0]!, at: 100, runs: [transaction("commit")] },
        { ...sendings[1]!, at: 200, runs: [] }
      ],
      operations: [{ at: 900, what: { _tag: "Restart", away: 100 } }]
    })
    assert.deepStrictEqual(facts, [
      "stored work",
      "handed to a1",
      "gone: transaction",
      "committed 1 acks, 1 rows, 1 sends",
      "stored work",
      "handed to a1",
      "gone: settled",
      "back: restart",
      "rebooted without 0 rows, 0 sends",
      "handed to a2",
      "gone: settled"
    ])
  })
})
