/** Laws of groups, and ways to break them that they find. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Laws from "./groupLaws.ts"
import * as LeaseLaws from "./leaseLaws.ts"

/** Lives that a sound core must survive. */
const lives = process.env["REQUEUE_CAMPAIGNS"] === "1" ? 3000 : 100

interface Lives<Plan> {
  readonly plans: fc.Arbitrary<Plan>
  readonly live: (plan: Plan) => Effect.Effect<void, unknown>
}

/** Looks for a life that breaks a law; `undefined` where there is none among so many. */
const broken = async <Plan>({ live, plans }: Lives<Plan>, numRuns: number, seed?: number) => {
  const { counterexample } = await fc.check(
    fc.asyncProperty(plans, (plan) => Effect.runPromise(live(plan))),
    { numRuns, endOnFailure: true, ...(seed === undefined ? {} : { seed }) }
  )
  return counterexample?.[0]
}

it("none leaves its queue before those in front of it, none is lost or given up unseen, no two batches share a group", async () =>
  assert.isUndefined(await broken({ live: Laws.live, plans: Laws.plans }, lives)))

it("one whose codec takes longer than the batch in front of it stays behind those that wait for that batch", () =>
  Effect.runPromise(
    Laws.live({
      ids: ["a24", "a22", "c30", "a10", "c27", "b17", "a31", "b32", "b28", "c14"],
      perGroup: 8,
      size: 4,
      concurrency: 1,
      prefetch: 13,
      kind: "calls",
      isSlow: true,
      backsOff: true,
      immediate: 0,
      doomed: [],
      flaky: [12, 10, 4, 0, 12]
    })
  ))

it("while settlements are lost and leases not extended, none runs out of turn or after it was done; then all are settled soon", async () =>
  assert.isUndefined(await broken(LeaseLaws, lives)))

const fileOf = (name: string): string => (name === "Lifecycle" ? "consume/Lifecycle.ts" : `consume/internal/${name}.ts`)

/** A seed of lives in which all of them are found soon. */
const soon = 4

describe("a core is found that", () => {
  it.each([
    [
      "lets those behind a retried message have their own verdicts",
      "runs",
      "if (halted.has(group)) {",
      "if (group === undefined) {"
    ],
    [
      "lets a batch take what another one has left of a group",
      "groups",
      "group.isClosed = true\n      const waiting",
      "const waiting"
    ],
    [
      "keeps those behind a message that goes back",
      "groups",
      "this.#giveBack(this.#cut(group, item))",
      "group.out.delete(item)"
    ],
    [
      "lets a body that is decoded sooner overtake",
      "groups",
      'isUnbegun(state) ? state._tag !== "Decoding"',
      "isUnbegun(state) ? true"
    ],
    ["lets a message join whose batch has begun", "groups", " || (group.isClosed && group.out.size > 1)", ""],
    [
      "acks before those in front of a message have a verdict",
      "task",
      "if (group === undefined) {",
      "if (group !== null) {"
    ],
    [
      "counts what was given back unseen",
      "Lifecycle",
      "if (!isUncounted && history.uncounted === 0) return none",
      "if (history.uncounted === 0) return none"
    ],
    [
      "settles those behind a message that is run again",
      "runs",
      "rerun.has(group) ? undefined : settle(item, verdict)",
      "settle(item, verdict)"
    ],
    ["runs single messages of a group side by side", "groups", "!single && ", ""]
  ])("%s", async (_, file, text, replacement) => {
    const patch = { file: fileOf(file), text, replacement }
    const mutant: typeof Laws = await import(
      /* @vite-ignore */ `./groupLaws.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    assert.isDefined(await broken(mutant, 2000, soon))
  })

  it.each([
    [
      "forgets what was decided of a message that goes back unrun",
      "Lifecycle",
      "[decisionOf(state), history.prior]",
      "[decisionOf(state)]"
    ],
    ["takes a release for a decision", "Lifecycle", '.filter(({ settlement }) => settlement._tag !== "Release")', ""],
    [
      "makes pauses longer for each lease that ends meanwhile",
      "Lifecycle",
      'effects: [{ _tag: "Remember", memory: { ...countsOf(life), decision: decided(life), isLost: true } }]',
      'effects: [{ _tag: "Remember", memory: { ...countsOf(life), decision: ((d) => d && { ...d, losses: d.losses + 1, tryAt: performance.now() + 1000 * 2 ** (d.losses + 1) })(decided(life)), isLost: true } }]'
    ]
  ])("%s", async (_, file, text, replacement) => {
    const patch = { file: fileOf(file), text, replacement }
    const mutant: typeof LeaseLaws = await import(
      /* @vite-ignore */ `./leaseLaws.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    assert.isDefined(await broken(mutant, 2000, soon))
  })
})
