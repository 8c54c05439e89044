/** Laws of groups, and ways to break them that they find. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Laws from "./groupLaws.ts"

/** Looks for a life that breaks a law; `undefined` where there is none among so many. */
const broken = async ({ live, plans }: typeof Laws, numRuns: number) => {
  const { counterexample } = await fc.check(
    fc.asyncProperty(plans, (plan) => Effect.runPromise(live(plan))),
    { numRuns, endOnFailure: true }
  )
  return counterexample?.[0]
}

it("none leaves its queue before those in front of it, none is lost or given up unseen, no two batches share a group", async () =>
  assert.isUndefined(await broken(Laws, 300)))

describe("a core is found that", () => {
  it.each([
    [
      "lets those behind a retried message have their own verdicts",
      "task",
      "if (group !== undefined && halted?.has(group) === true) {",
      "if (group === undefined) {"
    ],
    ["lets a batch take what another one has left of a group", "groups", "group.isClosed = true\n", ""],
    [
      "keeps those behind a message that goes back",
      "groups",
      "else follow(cut(group, item, load))",
      "else cutAlone(group, item, load)"
    ],
    [
      "lets a body that is decoded sooner overtake",
      "groups",
      'every(({ stage }) => stage !== "decoding")',
      "every(() => true)"
    ],
    [
      "lets a message join whose batch has begun",
      "groups",
      "if (group.isClosed && group.out.size > 1) return",
      "if (group.out.size > 99) return"
    ],
    [
      "acks before those in front of a message have a verdict",
      "task",
      "const isOut = group !== undefined &&",
      "const isOut = group === undefined &&"
    ],
    [
      "counts what was given back unseen",
      "redeliveries",
      "(isUncounted || told !== delivery.attempts)",
      "told !== delivery.attempts"
    ],
    [
      "settles those behind a message that is run again",
      "task",
      "group !== undefined && rerun?.has(group) === true ? undefined : settle()",
      "settle()"
    ],
    ["runs single messages of a group side by side", "groups", "(!single && ", "("]
  ])("%s", async (_, file, text, replacement) => {
    const patch = { file: `consume/internal/${file}.ts`, text, replacement }
    const mutant: typeof Laws = await import(
      /* @vite-ignore */ `./groupLaws.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    assert.isDefined(await broken(mutant, 2000))
  })
})
