/** Runs a consumer's pipeline: gives it deliveries and reconnections, extends its leases, and reports its state. */
import type { SubscribeOptions } from "../../port/Broker.ts"
import type { ConsumerHealth } from "../../observe/Health.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import * as Pipeline from "./pipeline.ts"
import type { Interrupted } from "./taskRunner.ts"
import * as TurnClock from "./turnClock.ts"

export interface Engine
  extends
    Pick<SubscribeOptions, "onDelivery" | "onReconnect">,
    Pick<Pipeline.Pipeline, "refresh" | "giveBack" | "stop"> {
  /** Interrupts every run of the handler, and gives back the messages without a verdict. */
  readonly interrupt: () => Interrupted
  /** Calls back as soon as no batch is in progress and every delivery is settled. */
  readonly whenIdle: (callback: () => void) => void
  readonly stats: () => Omit<ConsumerHealth, "queue" | "state" | "error">
}

export const make = (options: Pipeline.Options): Engine => {
  const pipeline = Pipeline.make(options)
  const { batcher, credit, gates, idleness, inFlight, inProgress, intake, workerPool } = pipeline
  const { lease } = options.capabilities
  const arrival = TurnClock.make(options.wallClock)
  let lastDelivery: number | undefined

  if (lease !== undefined) keepLeases(lease.duration, options.timers, inFlight.extendLeases)

  return {
    onDelivery: (delivery) => {
      lastDelivery = arrival()
      intake.onDelivery(delivery, lastDelivery)
    },
    onReconnect: (isGone = () => true) =>
      credit.renew(() => {
        intake.onReconnect(isGone)
        // Messages of the lost connection that no handler has begun are delivered again by the new one.
        for (const item of batcher.clear()) {
          if (isGone(item.delivery)) inFlight.forget(item)
          else batcher.push(item)
        }
        inFlight.onReconnect(isGone)
        gates.signal({ _tag: "Reconnected" })
      }),
    refresh: pipeline.refresh,
    giveBack: pipeline.giveBack,
    stop: pipeline.stop,
    interrupt: workerPool.interrupt,
    whenIdle: idleness.whenIdle,
    stats: () => ({
      buffered: batcher.size(),
      inProgress: inProgress(),
      backoff: gates.backoff(),
      lastDelivery,
      lastSettled: inFlight.lastSettled()
    })
  }
}

/** Extends the leases, which last `duration` milliseconds, three times within that time: two extensions may fail. */
const keepLeases = (duration: number, timers: Timers, extend: () => void): void => {
  timers.after(duration / 3, () => {
    extend()
    keepLeases(duration, timers, extend)
  })
}
