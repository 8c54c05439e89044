/** Counting and reading dead letters, the latter as an async iterable. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as DeadLetters from "../../dead-letters/DeadLetters.ts"
import * as Options from "../../dead-letters/internal/options.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { Session } from "./session.ts"

/** The calls that only read. */
export interface Reads {
  /** The number of letters; `undefined` where the broker cannot tell. */
  readonly count: () => Promise<number | undefined>
  /** Whether the broker has the queue; also `true` where it cannot tell. */
  readonly exists: () => Promise<boolean>
  /** Why parts of the broker do not answer: what the other calls tell and do is without the letters there. */
  readonly missing: () => Promise<ReadonlyArray<BrokerError>>
  /**
   * Reads dead letters one after the other, and keeps none: `for await (const letter of dead.read())`. When the loop ends, by
   * `break` or an error as well, all are given back; so they are when the connection is closed meanwhile, and then the loop
   * fails with `ConnectionClosed`.
   */
  readonly read: (options?: DeadLetters.ReadOptions) => AsyncIterable<DeadLetters.DeadLetter>
}

export const reads = ({ hold, run }: Pick<Session, "hold" | "run">, queue: string): Reads => ({
  count: async () => run(Effect.flatMap(DeadLetters.make(queue), ({ count }) => count)),
  exists: async () => run(Effect.flatMap(DeadLetters.make(queue), ({ exists }) => exists)),
  missing: async () => run(Effect.flatMap(DeadLetters.make(queue), ({ missing }) => missing)),
  read: (options) => {
    OptionNames.orThrow(Options.read("deadLetters.read", queue, options))
    return {
      // It begins when it is iterated, and gives all back when the iteration ends, however it does.
      async *[Symbol.asyncIterator]() {
        const { end, scope } = hold()
        try {
          const reading = Effect.flatMap(DeadLetters.make(queue), ({ read }) => read(options))
          const { next } = await run(Scope.provide(reading, scope))
          for (let page = await run(next); page !== undefined; page = await run(next)) yield* page
        } finally {
          await end()
        }
      }
    }
  }
})
