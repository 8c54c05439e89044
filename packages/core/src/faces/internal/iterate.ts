/** Dead letters that are read page by page, as an async iterable. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as DeadLetters from "../../dead-letters/DeadLetters.ts"
import type { Broker } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Session } from "./session.ts"

/** Begins when it is iterated, and gives all back when the iteration ends, however it does. */
export const iterate = (
  run: Session["run"],
  read: Effect.Effect<DeadLetters.Letters, BrokerError, Broker | Scope.Scope>
): AsyncIterable<DeadLetters.DeadLetter> => ({
  async *[Symbol.asyncIterator]() {
    const scope = Scope.makeUnsafe()
    try {
      const { next } = await run(Scope.provide(read, scope))
      for (let page = await run(next); page !== undefined; page = await run(next)) yield* page
    } finally {
      await run(Scope.close(scope, Exit.void))
    }
  }
})
