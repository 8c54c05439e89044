/** Removes dead letters for good. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Closing from "../../internal/Closing.ts"
import * as Callback from "./callback.ts"
import * as Held from "./held.ts"
import type { PurgeOptions } from "./options.ts"
import { DeadLettersStopped, type Failed } from "./report.ts"
import * as Sweep from "./sweep.ts"

/** Returns the error of a purge that did not browse all letters. */
const partial = (
  { capabilities }: Broker.Service,
  queue: string,
  { hidden, unreached }: Pick<Sweep.Ended, "hidden" | "unreached">
): BrokerError.BrokerError | undefined => {
  const because = (letters: number, why: string, remedy: string) =>
    new BrokerError.BrokerError({
      broker: capabilities.broker,
      operation: "purge",
      queue,
      reason: "Unsupported",
      detail: `${letters} letters were not browsed: ${why}`,
      remedy
    })
  if (hidden > 0) {
    const why = "the broker shows only the first letters of each group, and these stay"
    return because(hidden, why, "Redrive or remove the first letters of each group before, or purge all letters")
  }
  if (unreached === 0) return undefined
  const why = "a purge holds each letter that the filter rejects until the purge ends, and it has reached its limit"
  return because(unreached, why, "Redrive, park or remove some of the letters that the filter rejects first")
}

/** Purges a queue, and returns the number of removed letters. The caller has checked the options. */
export const purge = (
  broker: Broker.Service,
  queue: string,
  { all, audit, dryRun, filter, signal }: PurgeOptions
): Effect.Effect<number, BrokerError.BrokerError | DeadLettersStopped> =>
  Effect.gen(function* () {
    if (signal?.aborted === true) return 0
    if (all === true) {
      // Waits for letters that another reader is about to return.
      const { ready } = yield* Held.count(broker, queue)
      if (dryRun !== true) return yield* broker.admin.purge(queue)
      if (ready !== undefined) return ready
    }
    const isMeant = Callback.guard(queue)("filter", (letter: Delivery.Delivery) => Sweep.matches(letter, filter))
    let gone = 0
    const stopped = (removed: number, cause: Failed): DeadLettersStopped =>
      new DeadLettersStopped({ queue, operation: "purge", removed, report: undefined, cause })
    const sweep = Sweep.run(
      broker,
      queue,
      { audit, signal },
      {
        select: isMeant,
        copy: dryRun === true ? "look" : "none",
        onStep: (current) => void (gone = current().removed)
      }
    )
    const told = Closing.told(sweep, broker, queue, (cause) => stopped(gone, cause))
    const { error, summary, ...behind } = yield* told
    const { removed, selected } = summary
    const cause = error ?? (dryRun === true ? undefined : partial(broker, queue, behind))
    if (cause === undefined) return dryRun === true ? selected : removed
    return yield* stopped(removed, cause)
  })
