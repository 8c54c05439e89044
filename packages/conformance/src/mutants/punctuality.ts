/** Brokers that hand over delayed retries at the wrong time. */
import type { Mutant } from "../Mutant.ts"
import { decorate } from "../internal/decorate.ts"
import { Settlement } from "@requeue/core"
import * as Effect from "effect/Effect"

/** A message on its way back: whether its time has come, and how to hand it over. */
interface Way {
  isOver: boolean
  handOver: () => void
}

const name = (by: number): string =>
  by < 0 ? `hands over retries ${-by} ms early` : `hands over retries ${by} ms late`

/**
 * Hands over every delayed retry so many milliseconds late, or early where that is negative.
 *
 * When to use: to see that an adapter's suite notices it, on the real broker. Late by twice what the harness allows and
 * early by 5 ms must be found on any machine, also on a busy one.
 */
export const shifted = (by: number): Mutant => ({
  name: name(by),
  kills: "of many retries at a time, none is early and none is late",
  broker: (broker, fork) => {
    // A broker that is late itself is asked for less, and what comes is held until it is early by just so much.
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

/** For a broker that is never late by more than a millisecond, in virtual time. */
export const mutants: ReadonlyArray<Mutant> = [shifted(-5), shifted(2)]
