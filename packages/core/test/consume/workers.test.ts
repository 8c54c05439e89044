/** Batches start as far as concurrency allows, also after a defect. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Dispatch from "../../src/consume/internal/dispatch.ts"
import * as Lifecycle from "../../src/consume/internal/lifecycle.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as Scripted from "../scripted.ts"

it.effect("a defect that ends the start of batches does not end it for ever", () => {
  const broker = Scripted.make()
  return Effect.gen(function* () {
    const runs: Array<string> = []
    let isBroken = false
    const { engine } = yield* Lifecycle.make<never>({
      queue: QueueDefinition.make("q"),
      options: {},
      batch: BatchPolicy.single,
      single: true,
      concurrency: () => {
        if (isBroken) throw new Error("a defect")
        return 1
      },
      window: 2,
      runHandler: (dependencies) => Dispatch.runner(dependencies, ({ id }) => void runs.push(id), true)
    })
    engine.refresh()
    isBroken = true
    assert.throws(() => broker.deliver("a"), "a defect")
    isBroken = false
    broker.deliver("b")
    assert.deepStrictEqual(runs, ["a", "b"])
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
})
