/**
 * Starts batches within the limits of concurrency, rate and flow. It yields to the event loop between bursts of batches, and
 * runs messages that may have killed their process alone.
 */
import * as Settlement from "../../message/Settlement.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import type { Batcher } from "./batcher.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Item } from "./item.ts"
import type { Flow } from "./flow.ts"
import type { Groups } from "./groups.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import * as ShortList from "../../runtime/ShortList.ts"
import type { Leases } from "./leases.ts"
import * as Runs from "./runs.ts"

export interface Scheduler extends Pick<Runs.Runs, "interrupt" | "running"> {
  /** Starts every batch that is due and may start. */
  readonly pump: () => void
  /** Number of batches in progress. */
  readonly batches: () => number
  readonly suspects: Suspects
}

export interface Dependencies
  extends Omit<Runs.Dependencies, "progress">, SuspectsDependencies, Pick<HandlerRuntime, "yieldThen"> {
  /** Whether the handler gets one message at a time, so each message of a batch is a separate task. */
  readonly single: boolean
  readonly progress: Progress
  readonly deliveries: Deliveries
  readonly flow: Flow
  readonly groups: Pick<Groups, "begun">
  /** The leases of the deliveries; `undefined` if the broker has none. */
  readonly leases?: Pick<Leases, "last"> | undefined
  /** Number of batches that may be in progress. */
  readonly concurrency: number | (() => number)
  /** A running rate limit; `undefined` without one. */
  readonly limiter?: { readonly room: () => number; readonly reserve: (runs: number) => void } | undefined
}

export const make = (dependencies: Dependencies): Scheduler => {
  const { batcher, concurrency, deliveries, flow, groups, jobTime, leases, limiter, progress, single, yieldThen } =
    dependencies
  const yieldBudget = new YieldBudget()
  const suspects = new Suspects(dependencies, () => pump())
  const runs = Runs.make(dependencies, () => yieldBudget.failed())
  let batches = 0
  let isYielding = false
  let isPumping = false

  const mayStart = (): boolean =>
    !flow.isStopping() &&
    !isYielding &&
    !suspects.isAlone &&
    batches < (typeof concurrency === "number" ? concurrency : concurrency()) &&
    (limiter === undefined || limiter.room() > 0) &&
    flow.mayStart() &&
    (leases === undefined || leases.last())

  const pump = (): void => {
    if (isPumping) return
    isPumping = true
    try {
      while (mayStart()) {
        const items = batcher.suspects() === 0 ? batcher.take(batchLimit(dependencies)) : suspects.next(batches)
        if (items === undefined) break
        if (yieldBudget.begun()) yieldToOthers()
        startBatch(items)
      }
    } finally {
      // Also after a defect, which must not stop all other messages.
      isPumping = false
    }
  }

  const yieldToOthers = (): void => {
    isYielding = true
    yieldThen(() => {
      isYielding = false
      pump()
    })
  }

  const startBatch = (items: ReadonlyArray<Item>): void => {
    batches++
    flow.onStart(items[0]!.key)
    let isGrouped = false
    for (const item of items) {
      deliveries.begin(item)
      if (item.group !== undefined) isGrouped = true
    }
    if (isGrouped) groups.begun(items)
    if (!single || items.length === 1) return runs.run(items, endBatch)
    limiter?.reserve(items.length)
    runEach(items, runs.run, endBatch)
  }

  const endBatch = (): void => {
    batches--
    if (suspects.isAlone) {
      suspects.isAlone = false
      flow.update()
    }
    progress.moved(jobTime())
    pump()
  }

  return { pump, batches: () => batches, suspects, interrupt: runs.interrupt, running: runs.running }
}

/** Returns the most messages of a batch that starts now. A handler of single messages needs a run for each. */
const batchLimit = ({ flow, limiter, single }: Dependencies): number =>
  limiter === undefined || !single ? flow.batchLimit() : Math.min(flow.batchLimit(), limiter.room())

/** Runs the messages of a batch concurrently. Calls `onEnd` when all have ended. */
const runEach = (items: ReadonlyArray<Item>, run: Runs.Runs["run"], onEnd: () => void): void => {
  let open = items.length
  const onTaskEnd = (): void => {
    if (--open === 0) onEnd()
  }
  for (const item of items) run(ShortList.of(item), onTaskEnd)
}

interface SuspectsDependencies extends Pick<HandlerRuntime, "timers"> {
  readonly batcher: Batcher
  readonly capabilities: Pick<Capabilities, "uncountedRelease">
  readonly deliveries: Pick<Deliveries, "settle" | "flush">
  readonly flow: Pick<Flow, "update">
}

/** Milliseconds in which messages arrive that the broker sent before it received the lower credit. */
const gatherTime = 100

/**
 * Messages that may have killed their process. Each runs alone, with as few other messages in flight as possible, because a
 * crash costs every message in flight an attempt.
 */
export class Suspects {
  /** Whether one is running. */
  isAlone = false
  /** Whether the last arrival was one: the next may be one as well. */
  isThrottled = false
  readonly #dependencies: SuspectsDependencies
  readonly #onGathered: () => void
  /** Whether messages that were sent with the first one had time to arrive. */
  #hasGathered = false
  /** Whether the others were returned for the one that runs next. */
  #isCleared = false
  #isGathering = false

  constructor(dependencies: SuspectsDependencies, onGathered: () => void) {
    this.#dependencies = dependencies
    this.#onGathered = onGathered
  }

  /** Must be called when a message has arrived. */
  arrived(isSuspect: boolean): void {
    if (!isSuspect && !this.isThrottled) return
    this.#hasGathered &&= this.isThrottled
    this.isThrottled = isSuspect
    this.#dependencies.flow.update()
  }

  /** Returns the batch of the one that may run now, if any. At least one must wait. */
  next(batches: number): ReadonlyArray<Item> | undefined {
    const { batcher, capabilities } = this.#dependencies
    if (batches > 0) return undefined
    if (!this.#hasGathered) return this.#gather()
    // Only once, because more may keep arriving.
    if (batcher.size() > 1 && capabilities.uncountedRelease && !this.#isCleared) return this.#giveBackOthers()
    this.#isCleared = false
    this.isAlone = true
    return [batcher.takeSuspect()]
  }

  /** Waits for the others, because one is drawn at random: the first of a queue would be the same after each crash. */
  #gather(): undefined {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#dependencies.timers.after(gatherTime, () => {
      this.#isGathering = false
      this.#hasGathered = true
      this.#onGathered()
    })
  }

  /** Returns all but one to the queue. That one runs when the others are gone. */
  #giveBackOthers(): undefined {
    const { batcher, deliveries } = this.#dependencies
    const one = batcher.takeSuspect()
    const others = batcher.clear()
    // Before the others are released, because a release raises the credit.
    batcher.push(one, true)
    this.#isCleared = true
    for (const item of others) deliveries.settle(item, Settlement.Release())
    deliveries.flush()
    return this.#gather()
  }
}

/** The most batches of a burst. */
const maxBatches = 512

/** The most failed messages of a burst. */
const maxFailed = 24

/**
 * How many batches begin before the consumer yields to the event loop (a burst). The settlements of a burst are sent at its
 * end, and a retry may cost a hundred times as much as an ack. So a burst with many failures is short: otherwise its retries
 * would delay each other.
 */
export class YieldBudget {
  #length = 0
  /** Batches and failed messages so far; each burst halves the weight of earlier ones. */
  #begun = 0
  #failed = 0

  /** Must be called when a batch begins. Returns whether to yield after it. */
  begun(): boolean {
    this.#begun++
    if (++this.#length < this.#limit()) return false
    this.#length = 0
    this.#begun /= 2
    this.#failed /= 2
    return true
  }

  /** Must be called when a message ends with anything but an ack. */
  failed(): void {
    this.#failed++
  }

  #limit(): number {
    return this.#failed === 0
      ? maxBatches
      : Math.min(maxBatches, Math.ceil((maxFailed * Math.max(1, this.#begun)) / this.#failed))
  }
}

/** Records when a consumer last made progress, and calls back once it is idle. */
export class Progress {
  /**
   * The last progress, in monotonic milliseconds: a message arrived at an idle consumer, a handler began, or a batch or a
   * settlement ended.
   */
  last = 0
  readonly #isBusy: () => boolean
  #waiting: Array<() => void> = []

  constructor(isBusy: () => boolean) {
    this.#isBusy = isBusy
  }

  /** Must be called when a run begins, or a message arrives at an idle consumer. */
  begun(now: number): void {
    this.last = now
  }

  /** Must be called when a batch or a settlement has ended, so the consumer may be idle. */
  moved(now: number): void {
    this.last = now
    if (this.#waiting.length > 0) this.#check()
  }

  /** Calls back once nothing is in progress. */
  whenIdle = (callback: () => void): void => {
    this.#waiting.push(callback)
    this.#check()
  }

  #check(): void {
    if (this.#isBusy()) return
    for (const callback of this.#waiting.splice(0)) callback()
  }
}
