/**
 * Starts batches within the limits of concurrency and flow, runs the handler for each task, including immediate retries,
 * and settles the messages.
 */
import type * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Classifier from "../../policy/Classifier.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import type * as Failure from "../../policy/Failure.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import * as Bag from "../../runtime/Bag.ts"
import * as YieldBudget from "./yieldBudget.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Done, Run } from "./runHandler.ts"
import type { Flow } from "./flow.ts"
import type { Groups } from "./groups.ts"
import type { Item, InFlightCounters } from "./item.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import * as Suspects from "./suspects.ts"
import * as Task from "./task.ts"
import * as WrongHandler from "./wrongHandler.ts"

/** Runs the handler once, through `within` if given, and calls `done` once with the outcome. */
export type RunHandler = (task: Task.Task, done: Done<Task.Task>, within?: Telemetry.Run["within"]) => Run

/** The work that an interruption has stopped. */
interface Interrupted {
  readonly handlers: number
  /** Messages without a verdict. */
  readonly messages: number
}

export interface Scheduler {
  /** Starts every batch that is due and may start. */
  readonly pump: () => void
  /** Interrupts every run, and returns the messages without a verdict to the queue. */
  readonly interrupt: () => Interrupted
  /** Number of runs of the handler that have not ended. */
  readonly running: () => number
}

export interface Dependencies
  extends
    Pick<Task.Options, "queue" | "longest">,
    Pick<Runtime, "readFailure" | "yieldThen">,
    Omit<Suspects.Dependencies, "onGathered"> {
  readonly retry: RetryPolicy
  readonly runHandler: RunHandler
  /** Whether the handler gets one message at a time, so each message of a batch is a separate task. */
  readonly single: boolean
  readonly deliveries: Deliveries
  readonly flow: Flow
  readonly groups: Pick<Groups, "begun">
  readonly load: InFlightCounters
  /** The timers' time, read once per job of the event loop. */
  readonly jobTime: () => number
  readonly reporter: Reporter
  readonly watch: Telemetry.Watch | undefined
  /** Number of batches that may be in progress. */
  readonly concurrency: number | (() => number)
  /** A running rate limit; `undefined` without one. */
  readonly limiter?: { readonly room: () => number; readonly reserve: (runs: number) => void } | undefined
  /** Called when the handler expects a batch instead of a message, or the reverse. The consumer cannot continue. */
  readonly onWrongHandler: (error: RangeError) => void
}

export const make = (dependencies: Dependencies): Scheduler => {
  const { batcher, concurrency, flow, jobTime, limiter, load, reporter, single } = dependencies
  const { yieldThen } = dependencies
  const yieldBudget = YieldBudget.make()
  const deliveries = countingFailures(dependencies.deliveries, yieldBudget)
  const suspects = Suspects.make({ ...dependencies, onGathered: () => pump() })
  const taskOptions: Task.Options = {
    queue: dependencies.queue,
    longest: dependencies.longest,
    onFinal: (item, verdict) => {
      deliveries.conclude(item, verdict, undefined)
      deliveries.flush()
    },
    onIgnored: reporter.ignored
  }
  const runs = runner({ ...dependencies, deliveries }, taskOptions)
  let isYielding = false
  let isPumping = false

  const mayStart = (): boolean =>
    !load.isStopping &&
    !isYielding &&
    !load.isAlone &&
    load.batches < (typeof concurrency === "number" ? concurrency : concurrency()) &&
    (limiter === undefined || limiter.room() > 0) &&
    flow.mayStart()

  const pump = (): void => {
    if (isPumping) return
    isPumping = true
    try {
      while (mayStart()) {
        const items = load.suspects === 0 ? batcher.take(batchLimit(dependencies)) : suspects.next()
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
    load.batches++
    flow.onStart(items[0]!.key)
    let isGrouped = false
    for (const item of items) {
      item.stage = "begun"
      if (item.group !== undefined) isGrouped = true
    }
    if (isGrouped) dependencies.groups.begun(items)
    if (!single || items.length === 1) return runs.run(items, endBatch)
    limiter?.reserve(items.length)
    runEach(items, runs.run, endBatch)
  }

  const endBatch = (): void => {
    load.batches--
    load.lastMoved = jobTime()
    if (load.isAlone) {
      load.isAlone = false
      flow.update()
    }
    load.onMoved?.()
    pump()
  }

  return { pump, interrupt: runs.interrupt, running: runs.running }
}

/** Returns the most messages of a batch that starts now. A handler of single messages needs a run for each. */
const batchLimit = ({ flow, limiter, single }: Dependencies): number =>
  limiter === undefined || !single ? flow.batchLimit() : Math.min(flow.batchLimit(), limiter.room())

/** Runs the messages of a batch concurrently. Calls `onEnd` when all have ended. */
const runEach = (
  items: ReadonlyArray<Item>,
  run: (items: ReadonlyArray<Item>, onEnd: () => void) => void,
  onEnd: () => void
): void => {
  let open = items.length
  const onTaskEnd = (): void => {
    if (--open === 0) onEnd()
  }
  for (const item of items) run([item], onTaskEnd)
}

/** Counts the messages that do not end with an ack in the yield budget. */
const countingFailures = (deliveries: Deliveries, { failed }: YieldBudget.YieldBudget): Deliveries => ({
  ...deliveries,
  conclude: (item, verdict, failure) => {
    const settlement = deliveries.conclude(item, verdict, failure)
    if (settlement._tag !== "Ack") failed()
    return settlement
  }
})

const allowsRerun = ({ limiter, load, retry }: Dependencies, failure: Failure.Failure, reruns: number): boolean =>
  reruns < retry.immediate &&
  !load.isStopping &&
  (limiter === undefined || limiter.room() > 0) &&
  Classifier.classify(retry.classify, failure).startsWith("retry")

const interruptAll = (tasks: ReadonlyArray<Task.Task>): Interrupted => {
  const messages = tasks.reduce((sum, task) => sum + task.undecided(), 0)
  for (const task of tasks) task.run?.interrupt()
  return { handlers: tasks.length, messages }
}

/** Settles a message of an ended run, and returns the settlement; `undefined`: the handler is rerun for it. */
type Settle = (
  item: Item,
  verdict: Acknowledgement.Verdict | undefined,
  failure: Failure.Failure | undefined,
  mayRerun: boolean
) => Settlement.Settlement | undefined

/** Hoisted, because a closure in the loop would cost every run an allocation, even without groups. */
const after =
  (settle: Settle, failure: Failure.Failure | undefined, mayRerun: boolean) =>
  (item: Item, verdict: Acknowledgement.Verdict | undefined) =>
    settle(item, verdict, failure, mayRerun)

/** Reports an error that changes nothing, because every message of the run was settled before it. */
const reportLate = (reporter: Reporter, task: Task.Task, failure: Failure.Failure): void => {
  const last = task.items.length - 1
  reporter.failedLate(task.items[last]!.delivery, failure, task.verdict(last, undefined)?._tag ?? "Ack")
}

/** Runs handlers, and settles the messages of each run. */
const runner = (dependencies: Dependencies, taskOptions: Task.Options) => {
  const { deliveries, jobTime, load, onWrongHandler, reporter, retry, runHandler, readFailure, watch } = dependencies
  const running = Bag.make<Task.Task>()

  /** `reruns` counts earlier runs for these messages. */
  const run = (items: ReadonlyArray<Item>, reruns: number, onEnd: () => void): void => {
    const task = new Task.Task(taskOptions, items, reruns, onEnd)
    load.lastMoved = jobTime()
    task.watched = watch?.run(
      items.map(({ delivery }) => delivery),
      reruns
    )
    const begun = runHandler(task, onEnded, task.watched?.within)
    if (task.isClosed) return
    task.run = begun
    running.add(task)
  }

  const onEnded: Done<Task.Task> = (task, ended) => {
    const { onEnd, reruns, watched } = task
    const wrong = ended._tag === "Failed" && WrongHandler.is(ended.error) ? ended.error : undefined
    // No retry helps, so its messages are returned to the queue.
    const outcome: typeof ended = wrong === undefined ? ended : { _tag: "Interrupted" }
    if (wrong !== undefined) onWrongHandler(wrong)
    running.delete(task)
    const failure = outcome._tag === "Failed" ? readFailure(outcome.error) : undefined
    watched?.end(failure === undefined ? (outcome as Telemetry.Ending) : redacted(retry, failure)) // It did not fail.
    // A promise cannot be interrupted. A handler that timed out may still be running, so it is not rerun.
    const isLate = outcome._tag === "Failed" && outcome.isLate === true
    const mayRerun = failure !== undefined && !isLate && allowsRerun(dependencies, failure, reruns)
    const success = outcome._tag === "Interrupted" ? undefined : "success"
    const open = conclude(task, failure === undefined ? success : "failure", failure, mayRerun)
    if (open === undefined) onEnd()
    else run(open, reruns + 1, onEnd)
  }

  const settle: Settle = (item, verdict, failure, mayRerun) => {
    if (verdict === undefined) return deliveries.settle(item, Settlement.Release())
    // A lost message is not rerun, because its redelivery may run at the same time.
    const isOpen = mayRerun && verdict.by === "outcome" && !item.isLost
    // An error passed to `message.fail` is reported when its settlement is decided.
    if (failure !== undefined && !("failed" in verdict)) reporter.failed(item.delivery, failure, isOpen)
    return isOpen ? undefined : deliveries.conclude(item, verdict, failure)
  }

  /** Settles the messages of an ended run, and returns those to rerun, if any. */
  const conclude = (
    task: Task.Task,
    outcome: Acknowledgement.Outcome | undefined,
    failure: Failure.Failure | undefined,
    mayRerun: boolean
  ): ReadonlyArray<Item> | undefined => {
    let open: Array<Item> | undefined
    let order: ReturnType<typeof Task.ordering> | undefined
    task.close()
    for (let index = 0; index < task.items.length; index++) {
      if (task.isReported(index)) continue
      const item = task.items[index]!
      const verdict = task.verdict(index, outcome)
      const settlement =
        item.group === undefined
          ? settle(item, verdict, failure, mayRerun)
          : (order ??= Task.ordering(deliveries, reporter, after(settle, failure, mayRerun)))(item, item.group, verdict)
      if (settlement === undefined) (open ??= []).push(item)
    }
    if (failure !== undefined && task.isSettled()) reportLate(reporter, task, failure)
    deliveries.flush()
    return open
  }

  return {
    /** Runs the handler, with the policy's immediate retries, settles the messages, then calls `onEnd`. */
    run: (items: ReadonlyArray<Item>, onEnd: () => void): void => run(items, 0, onEnd),
    interrupt: (): Interrupted => interruptAll([...running]),
    running: running.size
  }
}

/** Returns the end of a failed run for telemetry, redacted. */
const redacted = ({ deadLetter }: RetryPolicy, failure: Failure.Failure): Telemetry.Ending => ({
  _tag: "Failed",
  error: DeadLetterRouting.redacted(deadLetter, failure)
})
