/**
 * Messages that may have killed their process: each is a batch of its own, and as little as possible is in flight beside
 * it, for a crash is charged to all that is.
 */
import * as Settlement from "../../message/Settlement.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import type { Timer } from "../../runtime/Timers.ts"
import type { Batcher } from "./batcher.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Item, InFlightCounters } from "./item.ts"
import type { Runtime } from "./runtime.ts"

export interface Suspects {
  /** The one that may run now. When to use: where some wait. */
  readonly next: () => ReadonlyArray<Item> | undefined
}

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly batcher: Batcher
  readonly capabilities: Pick<Capabilities, "uncountedRelease">
  readonly deliveries: Pick<Deliveries, "settle" | "flush">
  readonly load: InFlightCounters
  /** Called when they have had the time to come. */
  readonly onGathered: () => void
}

/** Milliseconds in which those messages come that the broker had sent before it heard of the lower credit. */
const together = 100

export const make = (dependencies: Dependencies): Suspects => {
  const { batcher, capabilities, deliveries, load, onGathered, timers } = dependencies
  let timer: Timer | undefined

  /** One is drawn among those that come together: the first of a queue would be the same after each crash. */
  const gather = (): undefined => {
    timer ??= timers.after(together, () => {
      timer = undefined
      load.hasGathered = true
      onGathered()
    })
  }

  /** Whether others were given back for the one that runs next. */
  let isCleared = false

  /** Gives all back but one. That one runs when the others are gone. */
  const giveBackOthers = (): undefined => {
    const one = batcher.takeSuspect()
    const others = batcher.clear()
    // Before the others go, for their going would make room.
    batcher.push(one, true)
    isCleared = true
    for (const item of others) deliveries.settle(item, Settlement.Release())
    deliveries.flush()
    return gather()
  }

  return {
    next: () => {
      if (load.batches > 0) return undefined
      if (!load.hasGathered) return gather()
      // Once: others may go on coming.
      if (load.buffered > 1 && capabilities.uncountedRelease && !isCleared) return giveBackOthers()
      isCleared = false
      load.isAlone = true
      return [batcher.takeSuspect()]
    }
  }
}
