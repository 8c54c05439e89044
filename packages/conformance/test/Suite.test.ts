import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Case } from "../src/Case.ts"
import { CheckFailed } from "../src/Check.ts"
import * as Ledger from "../src/Ledger.ts"
import * as Suite from "../src/Suite.ts"
import { dies, fails, hangs, lacks, layer, passes, unmeasurable } from "./fake.ts"

const options = (cases: ReadonlyArray<Case>): Suite.Options => ({
  name: "fake",
  layer,
  cases,
  virtualTime: true,
  timeout: 3 * 3_600_000
})

/** Registers with a runner that only remembers, then runs the tests as one would. */
const registered = async (wanted: Suite.Options) => {
  const tests: Array<{
    readonly path: string
    readonly timeout: number
    readonly body: (context: any) => Promise<void>
  }> = []
  const path: Array<string> = []
  const ends: Array<() => Promise<void>> = []
  Suite.register(
    {
      describe: (name, body) => {
        path.push(name)
        body()
        path.pop()
      },
      test: (name, { timeout }, body) => tests.push({ path: [...path, name].join(" > "), timeout, body }),
      afterAll: (body) => ends.push(body)
    },
    wanted
  )
  const results: Array<readonly [path: string, result: string]> = []
  const metas: Array<{ readonly measured?: number; readonly notMeasurable?: string; readonly notApplicable?: string }> =
    []
  for (const { body, path: name } of tests) {
    let result = "passed"
    const meta = {}
    const context = { skip: (reason: string) => (result = `skipped: ${reason}`), task: { meta } }
    metas.push(meta)
    await body(context).catch((error: Error) => (result = `failed: ${error.message}`))
    results.push([name, result])
  }
  for (const end of ends) await end()
  return { metas, results, tests }
}

describe("run", () => {
  it.live("answers every case's outcome", () =>
    Effect.gen(function* () {
      const ledger = yield* Suite.run(options([passes, fails, dies, lacks, hangs]))
      const outcomes = ledger.lines.map(({ name, outcome }) => [name, outcome._tag])
      assert.deepStrictEqual(outcomes, [
        ["passes", "Passed"],
        ["fails", "Failed"],
        ["dies", "Failed"],
        ["lacks", "NotApplicable"],
        ["hangs", "Failed"]
      ])
      const { failed: failures, notApplicable, notMeasurable, passed } = Ledger.totals(ledger)
      assert.deepStrictEqual([passed, failures, notApplicable, notMeasurable], [1, 3, 1, 0])
      const [, failed, , , hung] = ledger.lines.map(({ outcome }) => outcome)
      assert.isTrue(failed?._tag === "Failed" && failed.error instanceof CheckFailed && failed.error.expected === 2)
      assert.isTrue(hung?._tag === "Failed" && String(hung.error).includes("did not end within 10800000 ms"))
    })
  )

  it.live("gives up a case at its time, though its release never ends", () =>
    Effect.gen(function* () {
      const stuck = { ...hangs, run: Effect.onInterrupt(Effect.never, () => Effect.never) }
      const { lines } = yield* Suite.run({ ...options([stuck]), virtualTime: false, timeout: 50 })
      const [outcome] = lines.map((line) => line.outcome)
      assert.isTrue(outcome?._tag === "Failed" && String(outcome.error).includes("did not end within 50 ms"))
    })
  )

  it.live("runs in real time with one broker for all", () =>
    Effect.gen(function* () {
      const quick = { ...passes, run: Effect.sleep(1) }
      const ledger = yield* Suite.run({ ...options([quick, quick, lacks]), virtualTime: false })
      const { failed, notApplicable, passed } = Ledger.totals(ledger)
      assert.deepStrictEqual([passed, failed, notApplicable], [2, 0, 1])
    })
  )
})

describe("register", () => {
  it("gives the runner every case by group, and skips only what does not apply", async () => {
    const written: Array<string> = []
    const { metas, results, tests } = await registered({
      ...options([passes, fails, lacks]),
      write: (text) => written.push(text)
    })
    assert.deepStrictEqual(results, [
      ["conformance of fake > group > passes", "passed"],
      ["conformance of fake > group > fails", "failed: seen 1"],
      ["conformance of fake > group > lacks", "skipped: not applicable: a thing"]
    ])
    assert.deepStrictEqual(metas, [{}, {}, { notApplicable: "a thing" }])
    assert.isTrue(tests.every(({ timeout }) => timeout > 3 * 3_600_000))
    assert.strictEqual(written.length, 1)
    assert.include(
      written[0],
      "3 cases: 1 passed, 1 failed, 1 not applicable, 0 not measurable here (0 measured again)"
    )
  })

  it("measures again what could not be measured, and tells the runner how often, and of what was of no use", async () => {
    const written: Array<string> = []
    const { metas, results } = await registered({
      ...options([unmeasurable(2), unmeasurable(9)]),
      measurements: 4,
      write: (text) => written.push(text)
    })
    assert.deepStrictEqual(results, [
      ["conformance of fake > group > unmeasurable 2 times", "passed"],
      [
        "conformance of fake > group > unmeasurable 9 times",
        "skipped: not measurable here: a retry: 80 ms late; 10 ms are allowed, and a control of the same moment was 70 ms late"
      ]
    ])
    assert.deepStrictEqual(
      metas.map(({ measured, notMeasurable }) => [measured, notMeasurable !== undefined]),
      [
        [3, false],
        [4, true]
      ]
    )
    assert.include(
      written[0],
      "2 cases: 1 passed, 0 failed, 0 not applicable, 1 not measurable here (2 measured again)"
    )
  })

  it("ends the broker of a real-time suite after the last case", async () => {
    const { results } = await registered({ ...options([lacks]), virtualTime: false, write: () => {} })
    assert.strictEqual(results.length, 1)
  })
})
