/** Effect's Queue, with one fiber per slot that takes from it. */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

export const single: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  const body = new Uint8Array(256)
  const handler = (_body: Uint8Array): Effect.Effect<void> => Effect.promise(async () => meter.tick())
  const program = Effect.gen(function* () {
    const queue = yield* Queue.unbounded<Uint8Array>()
    for (let n = 0; n < messages + warmUp; n++) Queue.offerUnsafe(queue, body)
    const worker = Effect.forever(Effect.flatMap(Queue.take(queue), handler))
    for (let n = 0; n < concurrency; n++) yield* Effect.forkChild(worker)
    yield* Effect.promise(() => meter.done)
  })
  await Effect.runPromise(program)
}
