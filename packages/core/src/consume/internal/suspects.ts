/**
 * Messages that may have killed their process. Each runs alone, with as few other messages in flight as possible, because a
 * crash costs every message in flight an attempt.
 */
import * as Settlement from "../../message/Settlement.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import type { Timer } from "../../runtime/Timers.ts"
import type { Batcher } from "./batcher.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Item, InFlightCounters } from "./item.ts"
import type { Runtime } from "./runtime.ts"

export interface Suspects {
  /** Returns the batch of the one that may run now, if any. At least one must wait. */
  readonly next: () => ReadonlyArray<Item> | undefined
}

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly batcher: Batcher
  readonly capabilities: Pick<Capabilities, "uncountedRelease">
  readonly deliveries: Pick<Deliveries, "settle" | "flush">
  readonly load: InFlightCounters
  /** Called when the messages already under way had time to arrive. */
  readonly onGathered: () => void
}

/** Milliseconds in which messages arrive that the broker sent before it received the lower credit. */
const gatherTime = 100

export const make = (dependencies: Dependencies): Suspects => {
  const { batcher, capabilities, deliveries, load, onGathered, timers } = dependencies
  let timer: Timer | undefined

  /** Waits for the others, because one is drawn at random: the first of a queue would be the same after each crash. */
  const gather = (): undefined => {
    timer ??= timers.after(gatherTime, () => {
      timer = undefined
      load.hasGathered = true
      onGathered()
    })
  }

  /** Whether the others were returned for the one that runs next. */
  let isCleared = false

  /** Returns all but one to the queue. That one runs when the others are gone. */
  const giveBackOthers = (): undefined => {
    const one = batcher.takeSuspect()
    const others = batcher.clear()
    // Before the others are released, because a release raises the credit.
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
      // Only once, because more may keep arriving.
      if (load.buffered > 1 && capabilities.uncountedRelease && !isCleared) return giveBackOthers()
      isCleared = false
      load.isAlone = true
      return [batcher.takeSuspect()]
    }
  }
}
