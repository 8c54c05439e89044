/** Starts batches as far as concurrency and gates allow, and counts those in progress. */
import * as Settlement from "../../message/Settlement.ts"
import type { Batcher } from "./batcher.ts"
import type { Gates } from "./gates.ts"
import type { Item } from "./item.ts"
import type { Runtime } from "./runtime.ts"
import * as Task from "./task.ts"
import * as TaskRunner from "./taskRunner.ts"

export interface WorkerPool {
  /** Starts every batch that is due and may start. */
  readonly pump: () => void
  /** Interrupts every run of the handler. */
  readonly interrupt: () => TaskRunner.Interrupted
  /** Number of batches in progress. */
  readonly size: () => number
}

export interface Dependencies
  extends Pick<Task.Options, "queue" | "longest">, TaskRunner.Dependencies, Pick<Runtime, "yieldThen"> {
  /** Whether the handler takes one message at a time, so that each message of a batch is a task of its own. */
  readonly single: boolean
  readonly batcher: Batcher
  readonly gates: Gates
  /** Number of batches that may be in progress. */
  readonly concurrency: () => number
  readonly onBatchEnd: () => void
}

/** Number of batches that may start before the event loop gets a turn. */
const burstLimit = 512

export const make = (dependencies: Dependencies): WorkerPool => {
  const { batcher, concurrency, gates, inFlight, isStopping, onBatchEnd, reporter, single, yieldThen } = dependencies
  const runner = TaskRunner.make(dependencies)
  const taskOptions: Task.Options = {
    queue: dependencies.queue,
    longest: dependencies.longest,
    onFinal: (item, verdict) => {
      inFlight.conclude(item, verdict, undefined)
      inFlight.flush()
    },
    onIgnored: reporter.ignored
  }
  let batches = 0
  let started = 0
  let yielding = false
  let pumping = false

  const mayStart = (): boolean => !isStopping() && !yielding && batches < concurrency() && gates.mayStart()

  const pump = (): void => {
    if (pumping) return
    pumping = true
    try {
      while (mayStart()) {
        const due = batcher.take(gates.allowance())
        if (due === undefined) break
        const items = inFlight.remembersAcks() ? due.filter(isUnhandled) : due
        if (items.length === 0) continue
        if (++started % burstLimit === 0) yieldToOthers()
        startBatch(items)
      }
    } finally {
      // Also after a defect: one message must not stop all others.
      pumping = false
    }
  }

  /** A message may have been handled while its redelivery, after a lost connection, waited for its batch. */
  const isUnhandled = (item: Item): boolean => {
    if (!inFlight.isAcked(item.delivery)) return true
    inFlight.settle(item, Settlement.Ack)
    inFlight.flush()
    return false
  }

  const yieldToOthers = (): void => {
    yielding = true
    yieldThen(() => {
      yielding = false
      pump()
    })
  }

  const startBatch = (items: ReadonlyArray<Item>): void => {
    batches++
    gates.signal({ _tag: "Started", id: items[0]!.key })
    if (!single || items.length === 1) return runner.run(new Task.Task(taskOptions, items), endBatch)
    let open = items.length
    const onTaskEnd = (): void => {
      if (--open === 0) endBatch()
    }
    for (const item of items) runner.run(new Task.Task(taskOptions, [item]), onTaskEnd)
  }

  const endBatch = (): void => {
    batches--
    onBatchEnd()
    pump()
  }

  return { pump, interrupt: runner.interrupt, size: () => batches }
}
