/** Looks at messages as the browser shows them, and gives them back. */
import type { Backlog, Broker, BrokerError, Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as BrowseDelayed from "./browseDelayed.ts"
import * as BrowseReady from "./browseReady.ts"
import type { Dependencies } from "./browseSession.ts"

/** Looks at up to `limit` messages of a queue. */
export const open = (queue: string, limit: number, env: Dependencies) =>
  Effect.map(BrowseReady.open({ queue, limit }, env), ({ next }): Broker.Look => ({
    next: Effect.map(next(limit), (page) => page.map(({ delivery }) => delivery))
  }))

/** Up to `limit` messages of a queue, the oldest first. */
export const peek = (
  queue: string,
  limit: number,
  env: Dependencies
): Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next } = yield* open(queue, limit, env)
      const seen: Array<Delivery.Delivery> = []
      for (let page = yield* next; page.length > 0; page = yield* next) seen.push(...page)
      return seen
    })
  )

/** Delayed messages of a page. */
const pageSize = 1000

/** Goes through all delayed messages of a queue, and removes some. */
export const sift = (
  env: BrowseDelayed.Dependencies,
  request: Backlog.Request,
  removes: (message: Broker.Delayed) => boolean
): Effect.Effect<Broker.Sifted, BrokerError.BrokerError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { browsed, next, remove } = yield* BrowseDelayed.open(env, { ...request, limit: Number.POSITIVE_INFINITY })
      let [looked, removed] = [0, 0]
      for (let page = yield* next(pageSize); page.length > 0; page = yield* next(pageSize)) {
        const chosen = page.filter(removes).map(({ delivery }) => delivery)
        const [failure] = chosen.length === 0 ? [] : yield* remove(chosen)
        if (failure !== undefined) return yield* failure.error
        looked += page.length
        removed += chosen.length
      }
      return { looked, removed, isWhole: browsed().isWhole }
    })
  )
