/** Counting and reading dead letters, the latter as an async iterable. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as DeadLetters from "../../dead-letters/DeadLetters.ts"
import * as Options from "../../dead-letters/internal/options.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { DeadLetterQueue } from "../Requeue.ts"
import type { Session } from "./session.ts"

/** The calls that only read. */
export const reads = (run: Session["run"], queue: string): Pick<DeadLetterQueue, "count" | "exists" | "read"> => ({
  count: async () => run(Effect.flatMap(DeadLetters.make(queue), ({ count }) => count)),
  exists: async () => run(Effect.flatMap(DeadLetters.make(queue), ({ exists }) => exists)),
  read: (options) => {
    OptionNames.orThrow(Options.read("deadLetters.read", queue, options))
    return {
      // It begins when it is iterated, and gives all back when the iteration ends, however it does.
      async *[Symbol.asyncIterator]() {
        const scope = Scope.makeUnsafe()
        try {
          const reading = Effect.flatMap(DeadLetters.make(queue), ({ read }) => read(options))
          const { next } = await run(Scope.provide(reading, scope))
          for (let page = await run(next); page !== undefined; page = await run(next)) yield* page
        } finally {
          await run(Scope.close(scope, Exit.void))
        }
      }
    }
  }
})
