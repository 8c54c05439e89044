/** Programs that pull: loops that each pull a batch, work on it, settle it, and pause. */
import { type Handler, Puller, type QueueDefinition } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Fact } from "../History.ts"
import type { Pull, Version } from "../Scenario.ts"
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"
import { released } from "./Handlers.ts"

type Batch = Puller.PulledBatch<unknown>

/** How often a program loses its patience. If it always did, a batch that gathers for long might never be complete. */
const often = 0.5

type Why = Extract<Fact, { readonly _tag: "Pulled" }>["why"]

/** Why a wait without a batch has ended. */
const endOf = (ended: Option.Option<unknown>): Why => (Option.isNone(ended) ? "interrupted" : "empty")

/** Works on a batch until that is settled, at the latest until its lease ends. */
const worked = (batch: Batch, work: Handler.BatchHandler<unknown>, lease: number): Effect.Effect<void> => {
  // Cast, because the handlers of such a program are async functions.
  const done = (work(batch, { signal: AbortSignal.abort() }) as Promise<void>).then(batch.settle, (error: unknown) =>
    error === released ? batch.release() : batch.fail(error)
  )
  return Effect.raceFirst(
    Effect.promise(() => done),
    Effect.sleep(lease)
  )
}

/** Starts the puller of a version, and its loops. They end when its scope closes. */
export const start = (
  { draw, number, record }: World,
  { isAlive, name: process, run }: Machine,
  definition: QueueDefinition.QueueDefinition<unknown>,
  options: Puller.Options,
  { concurrency, handlerTimeout: lease }: Version,
  { loops, timeout = Infinity, pause, wait }: Pull,
  work: Handler.BatchHandler<unknown>
) =>
  Effect.gen(function* () {
    const puller = yield* Puller.make(definition, {
      ...options,
      lease,
      maxOpen: concurrency
    })
    const round = Effect.suspend(() => {
      const pull = number()
      record({ _tag: "Pulling", process, pull, wait })
      const pulled = (why: Why): void => {
        if (isAlive()) record({ _tag: "Pulled", process, pull, why })
      }
      return puller.pull({ wait }).pipe(
        Effect.timeoutOption(draw.chance(`${process} patience`, often) ? timeout : Infinity),
        Effect.tapError(() => Effect.sync(() => pulled("drained"))),
        Effect.flatMap((ended) => {
          const found = Option.getOrUndefined(ended)
          pulled(found === undefined ? endOf(ended) : "batch")
          return found === undefined ? Effect.void : worked(found, work, lease)
        }),
        Effect.andThen(Effect.sleep(pause))
      )
    })
    for (let nth = 0; nth < loops; nth++) run(Effect.ignore(Effect.forever(round)))
    return puller
  })
