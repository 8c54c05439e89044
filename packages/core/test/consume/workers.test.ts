/** Batches start as far as concurrency allows, also after a defect, and are run again as far as the policy allows. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as Dispatch from "../../src/consume/internal/runHandler.ts"
import * as Start from "../../src/consume/internal/start.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

it.effect("a defect that ends the start of batches does not end it for ever", () => {
  const broker = Scripted.make()
  return Effect.gen(function* () {
    const runs: Array<string> = []
    let isBroken = false
    const { engine } = yield* Start.make<never>({
      queue: QueueDefinition.make("q"),
      options: {},
      batch: BatchPolicy.single,
      single: true,
      runs: "handler",
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

describe("another run of a batch in the same delivery", () => {
  const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 })
  const retry = RetryPolicy.make({ immediate: 1, backoff: Backoff.constant(5000) })

  it.effect("leaves alone a retry that the run before it asked for", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const delays: Array<unknown> = []
      broker.faults.settle = ({ delivery, settlement }) => {
        delays.push([delivery.metadata.id, settlement._tag === "Retry" && settlement.delay])
        return undefined
      }
      const runs: Array<ReadonlyArray<string>> = []
      yield* Consumer.startBatch("q", { batch, retry }, (given) => {
        runs.push(given.messages.map(({ id }) => id))
        if (runs.length === 1) given.messages[0]!.retry()
        else given.retryAll({ delay: 0 })
        throw Object.assign(new Error("no"), runs.length === 1 ? {} : { retryAfter: 7 })
      })
      broker.deliver("a")
      broker.deliver("b")
      yield* Effect.yieldNow
      assert.deepStrictEqual(runs, [["a", "b"], ["b"]])
      assert.deepStrictEqual(delays, [
        ["a", 5000],
        ["b", 0]
      ])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has those whose delivery is not lost", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<ReadonlyArray<string>> = []
      yield* Consumer.startBatch("q", { batch, retry }, ({ messages }) => {
        runs.push(messages.map(({ id }) => id))
        if (runs.length > 1) return
        broker.reconnect(({ metadata }) => metadata.id === "a")
        throw new Error("no")
      })
      broker.deliver("a")
      broker.deliver("b")
      yield* Effect.yieldNow
      assert.deepStrictEqual(runs, [["a", "b"], ["b"]])
      assert.deepStrictEqual(
        broker.take().filter((call) => !call.startsWith("credit")),
        ["a:Retry b:Ack"]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
