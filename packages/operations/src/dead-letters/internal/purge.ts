/** Removes dead letters for good. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Callback from "./callback.ts"
import * as Held from "./held.ts"
import type { PurgeOptions } from "./options.ts"
import { DeadLettersStopped } from "./report.ts"
import * as Sweep from "./sweep.ts"

/** Letters that the broker does not show, because others of their groups are kept. */
const behind = ({ capabilities }: Broker.Service, queue: string, hidden: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: capabilities.broker,
    operation: "purge",
    queue,
    reason: "Unsupported",
    detail: `${hidden} letters were not looked at: the broker shows only the first of each group, and these stay`,
    remedy: "Redrive or remove those in front of them first, or purge all"
  })

/** Purges a queue, and returns the number of letters that are gone. The options have been checked. */
export const purge = (
  broker: Broker.Service,
  queue: string,
  { all, audit, dryRun, filter, signal }: PurgeOptions
): Effect.Effect<number, BrokerError.BrokerError | DeadLettersStopped> =>
  Effect.gen(function* () {
    if (signal?.aborted === true) return 0
    if (all === true) {
      // What a look is about to give back is there to be removed as well.
      const { ready } = yield* Held.count(broker, queue)
      if (dryRun !== true) return yield* broker.admin.purge(queue)
      if (ready !== undefined) return ready
    }
    const isMeant = Callback.guard(queue)("filter", (letter: Delivery.Delivery) => Sweep.matches(letter, filter))
    const { error, hidden, summary } = yield* Sweep.run(
      broker,
      queue,
      { audit, signal },
      {
        select: isMeant,
        copy: dryRun === true ? "look" : "none",
        onStep: () => {}
      }
    )
    const { removed, selected } = summary
    const cause = error ?? (hidden > 0 && dryRun !== true ? behind(broker, queue, hidden) : undefined)
    if (cause === undefined) return dryRun === true ? selected : removed
    return yield* new DeadLettersStopped({ queue, operation: "purge", removed, report: undefined, cause })
  })
