/** Defects of `Lifecycle.step`, each in one place: some sequence of events breaks what must hold. */
import { assert, describe, it } from "@effect/vitest"
import type * as Sequences from "./lifecycleSequences.ts"

const mutants: ReadonlyArray<readonly [what: string, text: string, replacement: string]> = [
  [
    "forgets a lost delivery",
    'effects: [{ _tag: "Remember", memory: { ...countsOf(life), decision: decided(life), isLost: true } }]',
    "effects: none"
  ],
  [
    "forgets what was decided",
    "memory: { ...countsOf(life), decision: decided(life), isLost: true }",
    "memory: { ...countsOf(life), decision: undefined, isLost: true }"
  ],
  [
    "repeats a dead letter that is stored",
    "const settlement = goesBack(decision.settlement) ? decision.settlement : Settlement.Ack",
    "const { settlement } = decision"
  ],
  [
    "acks after a lost answer what is decided otherwise",
    "prior.settlement, context), context)",
    "Settlement.Ack, context), context)"
  ],
  [
    "loses a waiting message silently",
    "return isBusy ? { life: marked, effects: none } : lose(marked)",
    "return { life: marked, effects: none }"
  ],
  ["ends a delivery that a handler has", 'const isBusy = state._tag === "Running" || ', "const isBusy = "],
  [
    "forgets a redelivery that arrived before the answer",
    'return redelivery === "lost" ? remember(settled) : repeatOn(settled, redelivery)',
    "return remember(settled)"
  ],
  [
    "forgets that the redelivery was lost",
    'if (redelivery === undefined || redelivery === "separate")',
    'if (redelivery === undefined || redelivery === "separate" || redelivery === "lost")'
  ],
  [
    "takes a returned message for the one in flight",
    "const isSame = !goesBack(settlement) || isCopied || history.isLost || due > context.now",
    "const isSame = true"
  ],
  [
    "takes the redelivery of an unsettled message for the returned one",
    "const isSame = !goesBack(settlement) ||",
    "const isSame ="
  ],
  [
    "drops a rejected dead letter",
    "if (smaller !== undefined) return decide(life, smaller, context)",
    "if (smaller !== undefined) return decide(life, Settlement.Ack, context)"
  ],
  ["treats a transient failure as a success", 'at(adopt(life), { _tag: "Held", decision })', "at(adopt(life), over)"],
  ["takes a release for a decision", '.filter(({ settlement }) => settlement._tag !== "Release")', ""],
  ["repeats what a transaction has committed", "if (isCommitted(life, fate))", "if (false)"],
  [
    "drops the redelivery of a committed message",
    "const ended = taken(life, { ...decision, settlement: Settlement.Ack })",
    "const ended = at(life, over)"
  ],
  [
    "repeats the retry of a committed message",
    "const ended = taken(life, { ...decision, settlement: Settlement.Ack })",
    "const ended = taken(life, decision)"
  ],
  ["takes every loss for a commit", 'history.transaction === "enlisted" &&', ""],
  ["takes a lost connection for a commit", "&& !history.isLost && history", "&& history"],
  ["takes a redelivered message for committed", "&& history.redelivery === undefined", ""],
  ["forgets the earlier decision of a kept message", "[decisionOf(state), history.prior]", "[decisionOf(state)]"]
]

describe("a step is found that", () => {
  it.each(mutants)("%s", async (_, text, replacement) => {
    const patch = { file: "consume/Lifecycle.ts", text, replacement }
    const mutant: typeof Sequences = await import(
      /* @vite-ignore */ `./lifecycleSequences.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    let found: ReadonlyArray<string> = []
    try {
      found = mutant.explore(7).violations
    } catch (error) {
      // An event that the engine would not send in this state.
      assert.include(String(error), "Lifecycle.step: ")
      return
    }
    assert.isNotEmpty(found)
  })
})
