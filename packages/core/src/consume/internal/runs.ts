/** Runs the handler for each task, with the policy's immediate retries, and settles the messages of each run. */
import type * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Classifier from "../../policy/Classifier.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import type * as Failure from "../../policy/Failure.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import * as Bag from "../../runtime/Bag.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Group, Item } from "./item.ts"
import type { Flow } from "./flow.ts"
import { follow } from "./groups.ts"
import * as Lifecycle from "../Lifecycle.ts"
import { isWrongHandler } from "./received.ts"
import type { Reporter } from "../../observe/Reporter.ts"
import type { Done, Run } from "./runHandler.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import * as Task from "./task.ts"

/** Runs the handler once, through `within` if given, and calls `done` once with the outcome. */
export type RunHandler = (task: Task.Task, done: Done<Task.Task>, within?: Telemetry.Run["within"]) => Run

/** The work that an interruption has stopped. */
interface Interrupted {
  readonly handlers: number
  /** Messages without a verdict. */
  readonly messages: number
}

export interface Runs {
  /** Runs the handler, with the policy's immediate retries, settles the messages, then calls `onEnd`. */
  readonly run: (items: ReadonlyArray<Item>, onEnd: () => void) => void
  /** Interrupts every run, and returns the messages without a verdict to the queue. */
  readonly interrupt: () => Interrupted
  /** Number of runs of the handler that have not ended. */
  readonly running: () => number
}

export interface Dependencies extends Pick<Task.Options, "queue" | "longest">, Pick<HandlerRuntime, "readFailure"> {
  readonly retry: RetryPolicy
  readonly runHandler: RunHandler
  readonly deliveries: Pick<Deliveries, "conclude" | "enlist" | "flush" | "keepsPlace" | "settle">
  readonly flow: Pick<Flow, "isStopping">
  readonly progress: { readonly begun: (now: number) => void }
  /** The timers' time, read once per job of the event loop. */
  readonly jobTime: () => number
  readonly reporter: Reporter
  readonly watch: Telemetry.Watch | undefined
  /** A running rate limit; `undefined` without one. */
  readonly limiter?: { readonly room: () => number } | undefined
  /** Called when the handler expects a batch instead of a message, or the reverse. The consumer cannot continue. */
  readonly onWrongHandler: (error: RangeError) => void
}

const allowsRerun = ({ flow, limiter, retry }: Dependencies, failure: Failure.Failure, reruns: number): boolean =>
  reruns < retry.immediate &&
  !flow.isStopping() &&
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

/** A lost message is not rerun, because its redelivery may run at the same time. */
const isRerunnable = ({ history }: Item, { by }: Acknowledgement.Verdict): boolean =>
  by === "outcome" && !history.isLost

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

/**
 * Keeps the order of groups when the messages of a batch are settled: after the first message of a group that is returned
 * to its queue, the later ones are returned too, whatever their verdicts. After the first that is rerun, they are rerun
 * too, even lost ones: the broker redelivers none of them while the first is in flight. Returns the settlement, as `settle`
 * does; `undefined` for a message to rerun.
 */
const ordering = (
  deliveries: Pick<Deliveries, "keepsPlace" | "settle">,
  reporter: Pick<Reporter, "heldBack">,
  settle: (item: Item, verdict: Acknowledgement.Verdict | undefined) => Settlement.Settlement | undefined
) => {
  const halted = new Set<Group>()
  const rerun = new Set<Group>()
  return (
    item: Item,
    group: Group,
    verdict: Acknowledgement.Verdict | undefined
  ): Settlement.Settlement | undefined => {
    if (halted.has(group)) {
      follow(item)
      if (verdict?._tag === "Ack" && verdict.by !== "outcome") reporter.heldBack(item.delivery)
      return deliveries.settle(item, Settlement.Release())
    }
    const settlement = rerun.has(group) ? undefined : settle(item, verdict)
    if (settlement === undefined) rerun.add(group)
    else if (deliveries.keepsPlace(settlement)) halted.add(group)
    return settlement
  }
}

/** Calls `onFailed` for each message that ends with anything but an ack. */
const counting =
  (deliveries: Dependencies["deliveries"], onFailed: () => void): Deliveries["conclude"] =>
  (item, verdict, failure) => {
    const settlement = deliveries.conclude(item, verdict, failure)
    if (settlement._tag !== "Ack" && !Lifecycle.isEnlisted(item)) onFailed()
    return settlement
  }

const taskOptionsOf = (
  { deliveries, longest, queue, reporter }: Dependencies,
  conclude: Deliveries["conclude"]
): Task.Options => ({
  queue,
  longest,
  onFinal: (item, verdict) => {
    conclude(item, verdict, undefined)
    deliveries.flush()
  },
  onIgnored: (item, call) => reporter.ignored(item?.delivery, call),
  enlist: deliveries.enlist
})

/** `onFailed` is called for each message that ends with anything but an ack. */
export const make = (dependencies: Dependencies, onFailed: () => void): Runs => {
  const { deliveries, jobTime, onWrongHandler, progress, reporter, retry, runHandler, readFailure, watch } =
    dependencies
  const running = Bag.make<Task.Task>()

  const conclude = counting(deliveries, onFailed)
  const taskOptions = taskOptionsOf(dependencies, conclude)

  /** `reruns` counts earlier runs for these messages. */
  const run = (items: ReadonlyArray<Item>, reruns: number, onEnd: () => void): void => {
    const task = new Task.Task(taskOptions, items, reruns, onEnd)
    progress.begun(jobTime())
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
    const wrong = ended._tag === "Failed" && isWrongHandler(ended.error) ? ended.error : undefined
    // No retry helps, or the messages have not failed. They are returned to the queue.
    const outcome: typeof ended = wrong === undefined && !task.foundDone ? ended : { _tag: "Interrupted" }
    if (wrong !== undefined) onWrongHandler(wrong)
    running.delete(task)
    const failure = outcome._tag === "Failed" ? readFailure(outcome.error) : undefined
    watched?.end(failure === undefined ? (outcome as Telemetry.Ending) : redacted(retry, failure)) // It did not fail.
    // A promise cannot be interrupted. A handler that timed out may still be running, so it is not rerun.
    const isLate = outcome._tag === "Failed" && outcome.isLate === true
    const mayRerun = failure !== undefined && !isLate && allowsRerun(dependencies, failure, reruns)
    const success = outcome._tag === "Interrupted" ? undefined : "success"
    const open = settleAll(task, failure === undefined ? success : "failure", failure, mayRerun)
    if (open === undefined) onEnd()
    else run(open, reruns + 1, onEnd)
  }

  const settle: Settle = (item, verdict, failure, mayRerun) => {
    if (verdict === undefined) return deliveries.settle(item, Settlement.Release())
    if (Lifecycle.isEnlisted(item)) return conclude(item, verdict, failure) // Its transaction may be committed.
    const isOpen = mayRerun && isRerunnable(item, verdict)
    // An error passed to `message.fail` is reported when its settlement is decided.
    if (failure !== undefined && !("failed" in verdict)) reporter.failed(item.delivery, failure, isOpen)
    return isOpen ? undefined : conclude(item, verdict, failure)
  }

  /** Settles the messages of an ended run, and returns those to rerun, if any. */
  const settleAll = (
    task: Task.Task,
    outcome: Acknowledgement.Outcome | undefined,
    failure: Failure.Failure | undefined,
    mayRerun: boolean
  ): ReadonlyArray<Item> | undefined => {
    let open: Array<Item> | undefined
    let order: ReturnType<typeof ordering> | undefined
    task.close()
    for (let index = 0; index < task.items.length; index++) {
      if (task.isReported(index)) continue
      const item = task.items[index]!
      const verdict = task.verdict(index, outcome)
      const settlement =
        item.group === undefined
          ? settle(item, verdict, failure, mayRerun)
          : (order ??= ordering(deliveries, reporter, after(settle, failure, mayRerun)))(item, item.group, verdict)
      if (settlement === undefined) (open ??= []).push(item)
    }
    if (failure !== undefined && task.isSettled()) reportLate(reporter, task, failure)
    deliveries.flush()
    return open
  }

  return {
    run: (items, onEnd) => run(items, 0, onEnd),
    interrupt: () => interruptAll([...running]),
    running: running.size
  }
}

/** Returns the end of a failed run for telemetry, redacted. */
const redacted = ({ deadLetter }: RetryPolicy, failure: Failure.Failure): Telemetry.Ending => ({
  _tag: "Failed",
  error: DeadLetterRouting.redacted(deadLetter, failure)
})
