/** Brokers that hand over delayed retries at the wrong time. */
import type { Mutant } from "../Mutant.ts"
import { decorate } from "../internal/decorate.ts"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** A message whose retry is under way: whether its time has come, and how to hand it over. */
interface Way {
  isOver: boolean
  handOver: () => void
}

const name = (by: number): string =>
  by < 0 ? `hands over retries ${-by} ms early` : `hands over retries ${by} ms late`

/**
 * Makes a mutant that hands over every delayed retry `by` milliseconds late, or early where `by` is negative.
 *
 * When to use: to see that a suite measures well on a real broker. Retries that are late by twice what the harness allows,
 * and those that are 20 ms early, must be found on any machine, also on a busy one: one that holds a retry may be late itself.
 */
export const shifted = (by: number): Mutant => ({
  name: name(by),
  kills: "of many retries at a time, none is early and none is late",
  broker: (broker, fork) => {
    // The broker may be late itself. So it is asked for a shorter delay, and the retry is held until it is `by` too early.
    const margin = by < 0 ? 200 + broker.capabilities.delayResolution : -by
    const ways = new Map<string, Way>()
    return decorate(broker, {
      settle: ({ delivery, settlement }) => {
        if (settlement._tag !== "Retry" || settlement.delay === 0) return undefined
        if (by < 0) {
          const way: Way = { isOver: false, handOver: () => {} }
          ways.set(delivery.metadata.id, way)
          const end = Effect.sync(() => {
            way.isOver = true
            way.handOver()
          })
          fork(Effect.delay(end, settlement.delay + by))
        }
        return { delivery, settlement: Settlement.Retry(Math.max(0, settlement.delay - margin)) }
      },
      onDelivery: (delivery, options) => {
        const way = ways.get(delivery.metadata.id)
        const handOver = () => options.onDelivery(delivery)
        if (way === undefined || way.isOver) handOver()
        else way.handOver = handOver
      }
    })
  }
})

/** Mutants for a broker in virtual time, which is never late by more than a millisecond. */
export const mutants: ReadonlyArray<Mutant> = [shifted(-5), shifted(2)]
