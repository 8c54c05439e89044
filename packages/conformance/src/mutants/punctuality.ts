/** Brokers that deliver delayed retries at the wrong time. */
import type { Mutant } from "../Mutant.ts"
import { decorate } from "../internal/decorate.ts"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** A message whose retry is in flight: whether its time has come, and how to deliver it. */
interface Way {
  isOver: boolean
  handOver: () => void
}

const name = (by: number): string =>
  by < 0 ? `hands over retries ${-by} ms early` : `hands over retries ${by} ms late`

/**
 * Makes a mutant that delivers every delayed retry `by` milliseconds late, or early if `by` is negative.
 *
 * Use it to check that a suite measures well on a real broker. It must find retries that are late by twice the harness's
 * allowance, and those that are 20 ms early, on any machine, busy ones included. A machine that holds a retry may be late itself.
 */
export const shifted = (by: number): Mutant => ({
  name: name(by),
  kills: "of many retries at a time, none is early and none is late",
  broker: (broker, fork) => {
    // The broker may be late itself. So it gets a shorter delay, and the retry is held until it is `by` too early.
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
