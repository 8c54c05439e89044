/** The batches in progress: starts them as far as concurrency and gates allow, and sees each to its end. */
import * as Classifier from "../../policy/Classifier.ts"
import * as DeadLetterRouting from "../../policy/DeadLetterRouting.ts"
import * as Failure from "../../policy/Failure.ts"
import type { RetryPolicy } from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type * as Telemetry from "../../observe/Telemetry.ts"
import * as Bag from "../../adapter-kit/Bag.ts"
import type { Batcher } from "./batcher.ts"
import type { Outcome, Run } from "./dispatch.ts"
import type { Gates } from "./gates.ts"
import type { Item } from "./item.ts"
import type { Outbox } from "./inFlight.ts"
import type { Reporter } from "./reporter.ts"
import { type Hooks, type Setting, Unit } from "./handlerRun.ts"

/** Runs a unit and says how it ended, exactly once. A handler is called through `within`, where there is one. */
export type Runner = (unit: Unit, done: (outcome: Outcome) => void, within?: Telemetry.Run["within"]) => Run

export interface Interrupted {
  readonly handlers: number
  readonly messages: number
}

export interface Workshop {
  /** Starts what can be started. */
  readonly pump: () => void
  /** Interrupts what is in progress; answers how many handlers, and how many messages without a verdict they had. */
  readonly interrupt: () => Interrupted
  /** Batches in progress. */
  readonly size: () => number
}

/** Units that may start before the event loop gets a turn. */
const burstLimit = 512

export const make = (env: {
  readonly queue: string
  readonly retry: RetryPolicy
  /** The longest delay that the broker can honour. */
  readonly longest: number
  /** Whether the messages of a batch are answered for one by one. */
  readonly single: boolean
  readonly runner: Runner
  readonly batcher: Batcher
  readonly outbox: Outbox
  readonly gates: Gates
  readonly reporter: Reporter
  readonly watch: Telemetry.Watch | undefined
  readonly concurrency: () => number
  readonly isStopping: () => boolean
  /** Gives the event loop a turn, then calls back. */
  readonly yieldThen: (resume: () => void) => void
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  readonly onBatchEnd: () => void
}): Workshop => {
  const { batcher, gates, outbox, reporter, retry } = env
  const running = Bag.make<Unit>()
  let batches = 0
  let started = 0
  let yielding = false
  let pumping = false

  const mayStart = (): boolean => !env.isStopping() && !yielding && batches < env.concurrency() && gates.mayStart()

  const pump = (): void => {
    if (pumping) return
    pumping = true
    while (mayStart()) {
      const taken = batcher.take(gates.allowance())
      if (taken === undefined) break
      const items = outbox.remembersAcks() ? taken.filter(isNew) : taken
      if (items.length === 0) continue
      if (++started % burstLimit === 0) letOthersRun()
      startBatch(items)
    }
    pumping = false
  }

  /** A message may have been handled while its redelivery, after a lost connection, waited here. */
  const isNew = (item: Item): boolean => {
    if (!outbox.isAcked(item.delivery)) return true
    outbox.settle(item, Settlement.Ack)
    outbox.flush()
    return false
  }

  const letOthersRun = (): void => {
    yielding = true
    env.yieldThen(() => {
      yielding = false
      pump()
    })
  }

  const startBatch = (items: ReadonlyArray<Item>): void => {
    batches++
    gates.signal({ _tag: "Started", id: items[0]!.key })
    if (!env.single || items.length === 1) return runUnit(new Unit(setting, items), 0, endBatch)
    let open = items.length
    const onUnitEnd = (): void => {
      if (--open === 0) endBatch()
    }
    for (const item of items) runUnit(new Unit(setting, [item]), 0, onUnitEnd)
  }

  const endBatch = (): void => {
    batches--
    env.onBatchEnd()
    pump()
  }

  const hooks: Hooks = {
    final: (item, verdict) => {
      outbox.conclude(item, verdict, undefined)
      outbox.flush()
    },
    ignored: reporter.ignored
  }
  const setting: Setting = { queue: env.queue, longest: env.longest, on: hooks }

  const runUnit = (unit: Unit, reruns: number, onEnd: () => void): void => {
    let ended = false
    const watched = env.watch?.run(
      unit.items.map(({ delivery }) => delivery),
      reruns
    )
    const onEnded = (outcome: Outcome): void => {
      ended = true
      running.delete(unit)
      const failure = outcome._tag === "Failed" ? Failure.make(outcome.error, env.wallClock()) : undefined
      watched?.end(failure === undefined ? (outcome as Telemetry.Ending) : failed(failure))
      if (failure !== undefined && mayRerun(unit, failure, reruns)) {
        for (const item of unit.items) reporter.failed(item.delivery, failure, true)
        return runUnit(unit, reruns + 1, onEnd)
      }
      conclude(unit, outcome, failure)
      onEnd()
    }
    const run = env.runner(unit, onEnded, watched?.within)
    if (ended) return
    unit.run = run
    running.add(unit)
  }

  const failed = ({ summary }: Failure.Failure): Telemetry.Ending => ({
    _tag: "Failed",
    error: DeadLetterRouting.redacted(retry.deadLetter, summary)
  })

  /** A promise's handler that was timed out may still be running, so it is not run again beside itself. */
  const mayRerun = (unit: Unit, failure: Failure.Failure, reruns: number): boolean =>
    reruns < retry.immediate &&
    !env.isStopping() &&
    unit.undecided() > 0 &&
    !(failure.error instanceof Failure.HandlerTimeout) &&
    Classifier.classify(retry.classify, failure).startsWith("retry")

  const conclude = (unit: Unit, outcome: Outcome, failure: Failure.Failure | undefined): void => {
    if (outcome._tag === "Interrupted") {
      const { decided, undecided } = unit.abandon()
      for (const [item, verdict] of decided) outbox.conclude(item, verdict, undefined)
      for (const item of undecided) outbox.settle(item, Settlement.Release())
    } else {
      unit.close(failure === undefined ? "success" : "failure", (item, verdict) => {
        if (failure !== undefined) reporter.failed(item.delivery, failure, false)
        outbox.conclude(item, verdict, failure)
      })
    }
    outbox.flush()
  }

  return {
    pump,
    interrupt: () => {
      const units = [...running]
      const messages = units.reduce((sum, unit) => sum + unit.undecided(), 0)
      for (const { run } of units) run?.interrupt()
      return { handlers: units.length, messages }
    },
    size: () => batches
  }
}
