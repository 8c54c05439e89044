/** Runs tasks: one run of the handler after another, until each message has a verdict and can be settled. */
import * as Classifier from "../../policy/Classifier.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import * as Failure from "../../policy/Failure.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import * as Bag from "../../adapter-kit/Bag.ts"
import type { Outcome, Run } from "./dispatch.ts"
import type { InFlight } from "./inFlight.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import type { Task } from "./task.ts"

/** Runs the handler once, and says exactly once how that ended. The handler is called through `within`, if given. */
export type RunHandler = (task: Task, done: (outcome: Outcome) => void, within?: Telemetry.Run["within"]) => Run

/** How much work an interruption has stopped. */
export interface Interrupted {
  readonly handlers: number
  /** Messages without a verdict. */
  readonly messages: number
}

export interface TaskRunner {
  /** Runs the handler as often as the policy's `immediate` allows, concludes the task, then calls `onEnd`. */
  readonly run: (task: Task, onEnd: () => void) => void
  /** Interrupts every run of the handler. */
  readonly interrupt: () => Interrupted
}

export interface Dependencies extends Pick<Runtime, "wallClock"> {
  readonly retry: RetryPolicy
  readonly runHandler: RunHandler
  readonly inFlight: InFlight
  readonly reporter: Reporter
  readonly watch: Telemetry.Watch | undefined
  /** Whether the consumer shuts down: no handler is run again. */
  readonly isStopping: () => boolean
}

export const make = (dependencies: Dependencies): TaskRunner => {
  const { inFlight, isStopping, reporter, retry, runHandler, wallClock, watch } = dependencies
  const running = Bag.make<Task>()

  /** `reruns` counts the runs for this task before this one. */
  const run = (task: Task, reruns: number, onEnd: () => void): void => {
    let ended = false
    const watched = watch?.run(
      task.items.map(({ delivery }) => delivery),
      reruns
    )
    const onEnded = (outcome: Outcome): void => {
      ended = true
      running.delete(task)
      const failure = outcome._tag === "Failed" ? Failure.make(outcome.error, wallClock()) : undefined
      watched?.end(outcome._tag === "Failed" ? redacted(retry, failure!) : outcome)
      if (failure !== undefined && mayRerun(task, failure, reruns)) {
        for (const item of task.items) reporter.failed(item.delivery, failure, true)
        return run(task, reruns + 1, onEnd)
      }
      conclude(task, outcome, failure)
      onEnd()
    }
    const started = runHandler(task, onEnded, watched?.within)
    if (ended) return
    task.run = started
    running.add(task)
  }

  /**
   * A promise cannot be interrupted: a handler that was timed out may go on, and must not run beside itself. Nor may it
   * run beside a redelivery.
   */
  const mayRerun = (task: Task, failure: Failure.Failure, reruns: number): boolean =>
    reruns < retry.immediate &&
    !isStopping() &&
    task.undecided() > 0 &&
    !task.items.some(inFlight.isStale) &&
    !(failure.error instanceof Failure.HandlerTimeout) &&
    Classifier.classify(retry.classify, failure).startsWith("retry")

  const conclude = (task: Task, outcome: Outcome, failure: Failure.Failure | undefined): void => {
    if (outcome._tag === "Interrupted") {
      const { decided, undecided } = task.abandon()
      for (const [item, verdict] of decided) inFlight.conclude(item, verdict, undefined)
      for (const item of undecided) inFlight.settle(item, Settlement.Release())
    } else {
      task.close(failure === undefined ? "success" : "failure", (item, verdict) => {
        if (failure !== undefined) reporter.failed(item.delivery, failure, false)
        inFlight.conclude(item, verdict, failure)
      })
    }
    inFlight.flush()
  }

  return {
    run: (task, onEnd) => run(task, 0, onEnd),
    interrupt: () => {
      const tasks = [...running]
      const messages = tasks.reduce((sum, task) => sum + task.undecided(), 0)
      for (const task of tasks) task.run?.interrupt()
      return { handlers: tasks.length, messages }
    }
  }
}

/** The end of a failed run as telemetry may see it. */
const redacted = ({ deadLetter }: RetryPolicy, { summary }: Failure.Failure): Telemetry.Ending => ({
  _tag: "Failed",
  error: DeadLetterRouting.redacted(deadLetter, summary)
})
