/**
 * The one composition of a subscription with the policies: what arrives is batched, run, judged and settled.
 *
 * Everything on the way of a message is plain synchronous JavaScript; Effect is entered once for the handler and once
 * for the settlement. What runs the batches, a handler or somebody who pulls, is a `Runner`.
 */
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Verdict } from "../Acknowledgement.ts"
import type { BatchPolicy } from "../BatchPolicy.ts"
import type { SubscribeOptions, Subscription } from "../Broker.ts"
import * as Capabilities from "../Capabilities.ts"
import type { Codec } from "../Codec.ts"
import * as ConsumerBackoff from "../ConsumerBackoff.ts"
import * as DeadLetterBudget from "../DeadLetterBudget.ts"
import * as Delay from "../Delay.ts"
import type { Delivery } from "../Delivery.ts"
import * as Failure from "../Failure.ts"
import * as RetryPolicy from "../RetryPolicy.ts"
import * as Settlement from "../Settlement.ts"
import type { Timers } from "../Timers.ts"
import * as Batcher from "./batcher.ts"
import type { Outcome, Run } from "./dispatch.ts"
import * as Gate from "./gate.ts"
import * as Intake from "./intake.ts"
import type { Item } from "./item.ts"
import * as Judge from "./judge.ts"
import * as Remembered from "./remembered.ts"
import type * as Reporter from "./reporter.ts"
import * as Settler from "./settler.ts"
import * as Unit from "./unit.ts"

/** Runs a unit and says how it ended, exactly once. */
export type Runner = (unit: Unit.Unit, done: (outcome: Outcome) => void) => Run

export interface Options {
  readonly queue: string
  readonly codec: Codec<any>
  readonly retry: RetryPolicy.RetryPolicy
  readonly retryDelay: Delay.Delay | undefined
  readonly batch: BatchPolicy
  /** Whether the messages of a batch are answered for one by one. */
  readonly single: boolean
  /** Batches that are filled while all that may be in progress are. */
  readonly ahead: number
  readonly backoff: ConsumerBackoff.ConsumerBackoff
  readonly budget: DeadLetterBudget.DeadLetterBudget | undefined
  readonly capabilities: Capabilities.Capabilities
  readonly runner: Runner
  readonly timers: Timers
  readonly fork: (effect: Effect.Effect<unknown, unknown>) => Fiber.Fiber<unknown, unknown>
  /** Gives the event loop a turn, then calls back. */
  readonly yieldThen: (resume: () => void) => void
  readonly random: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  readonly reporter: Reporter.Reporter
  /** The consumer cannot go on; it has stopped its intake. */
  readonly onFatal: (error: DeadLetterBudget.DeadLetterBudgetExhausted) => void
}

export interface Engine {
  readonly handlers: Pick<SubscribeOptions, "onDelivery" | "onReconnect">
  /** Must come before any concurrency is set. */
  readonly start: (subscription: Subscription) => void
  /** Batches that may be in progress; starts at 0, so that nothing is taken. */
  readonly setConcurrency: (concurrency: number) => void
  /** Takes no more, and gives back what no handler has seen. */
  readonly stopIntake: () => void
  /** Interrupts what is in progress and gives it back; answers how many messages. */
  readonly interrupt: () => number
  /** Calls back as soon as nothing is in progress and everything is settled. */
  readonly whenIdle: (callback: () => void) => void
  readonly stats: () => { readonly buffered: number; readonly inProgress: number; readonly level: number }
}

/** Units that may start before the event loop gets a turn. */
const burstLimit = 512

/** Message ids whose lost ack is remembered. */
const rememberLimit = 10_000

export const make = (options: Options): Engine => {
  const { batch, capabilities, queue, reporter, retry, timers } = options
  const longest = Capabilities.longestRetry(capabilities)
  const judge = Judge.make({ ...options, longest })
  const outstanding = new Set<Item>()
  const running = new Map<Unit.Unit, Run>()
  const remembered = Remembered.make(rememberLimit)
  let subscription: Subscription | undefined
  let settler: Settler.Settler | undefined
  let concurrency = 0
  let batchesRunning = 0
  let stopping = false
  let burst = 0
  let yielding = false
  let pumping = false
  let gathering = false
  let deliveries = 0
  let decoding = 0
  let idleWaiters: Array<() => void> = []

  const batcher = Batcher.make(batch, timers, () => pump())

  const makeGate = (because: "handler" | "broker", policy: ConsumerBackoff.ConsumerBackoff) =>
    Gate.make(policy, {
      timers,
      random: options.random,
      onChange: () => {
        updateCredit()
        pump()
      },
      onTransition: (before, after) => reporter.backoff(because, before, after)
    })
  // One machine for handlers that fail, and one for a broker that does not take retries and dead letters.
  const gates = [makeGate("handler", options.backoff), makeGate("broker", ConsumerBackoff.make())] as const
  const [handlerGate, brokerGate] = gates

  const updateCredit = (): void => {
    const full = concurrency === 0 ? 0 : batch.maxBatchSize * (concurrency + options.ahead)
    const allowance = Math.min(...gates.map((gate) => gate.allowance()))
    subscription?.credit(stopping ? 0 : Math.min(full, allowance))
  }

  const finish = (item: Item): void => {
    outstanding.delete(item)
    checkIdle()
  }

  const checkIdle = (): void => {
    if (idleWaiters.length === 0 || batchesRunning > 0 || outstanding.size > 0 || decoding > 0) return
    const waiters = idleWaiters
    idleWaiters = []
    for (const resume of waiters) resume()
  }

  // --- arrival ---

  const onDelivery = (delivery: Delivery): void => {
    const key = String(++deliveries)
    const arrive = (body: unknown): Item => {
      const item = { delivery, body, key, arrived: timers.now(), settling: false }
      outstanding.add(item)
      return item
    }
    const turnAway = (settlement: Settlement.Settlement): void => {
      settle(arrive(undefined), settlement)
      settler!.flush()
    }
    reporter.received(delivery)
    if (stopping) return turnAway(Settlement.Release())
    const refused = Intake.turnAway(delivery, {
      policy: retry,
      queue,
      acked: remembered.has(delivery.metadata.id),
      now: options.wallClock()
    })
    if (refused !== undefined) return turnAway(refused)
    decoding++
    Intake.decode(options.codec, delivery, {
      decoded: (body) => {
        decoding--
        if (stopping) return turnAway(Settlement.Release())
        batcher.push(arrive(body))
        if (gathers) gather()
        else pump()
      },
      undecodable: (error) => {
        decoding--
        turnAway(Intake.undecodable(retry, queue, error))
      }
    })
  }

  /** With no time to wait, a batch is what is there: what arrives in the same turn of the event loop. */
  const gathers = batch.maxBatchTimeout === 0 && batch.maxBatchSize > 1
  const gather = (): void => {
    if (gathering) return
    gathering = true
    options.yieldThen(() => {
      gathering = false
      pump()
    })
  }

  // --- batches ---

  const pump = (): void => {
    if (pumping || settler === undefined) return
    pumping = true
    while (!stopping && !yielding && batchesRunning < concurrency && gates.every((gate) => gate.mayStart())) {
      const items = batcher.take(Math.min(...gates.map((gate) => gate.allowance())))
      if (items === undefined) break
      if (++burst > burstLimit) letOthersRun()
      startBatch(items)
    }
    pumping = false
  }

  const letOthersRun = (): void => {
    yielding = true
    options.yieldThen(() => {
      yielding = false
      burst = 0
      pump()
    })
  }

  const startBatch = (items: ReadonlyArray<Item>): void => {
    batchesRunning++
    for (const gate of gates) gate.signal({ _tag: "Started", id: items[0]!.key })
    const units = options.single ? items.map((item) => [item]) : [items]
    let open = units.length
    const onUnitEnd = (): void => {
      if (--open > 0) return
      batchesRunning--
      checkIdle()
      pump()
    }
    for (const members of units) runUnit(makeUnit(members), 0, onUnitEnd)
  }

  const makeUnit = (items: ReadonlyArray<Item>): Unit.Unit =>
    Unit.make(queue, items, longest, {
      final: (item, verdict) => {
        conclude(item, verdict, undefined)
        settler!.flush()
      },
      ignored: reporter.ignored
    })

  const runUnit = (unit: Unit.Unit, reruns: number, onEnd: () => void): void => {
    let ended = false
    const run = options.runner(unit, (outcome) => {
      ended = true
      running.delete(unit)
      const failure = outcome._tag === "Failed" ? Failure.make(outcome.error, options.wallClock()) : undefined
      if (failure !== undefined && mayRerun(unit, failure, reruns)) {
        for (const item of unit.items) reporter.failed(item.delivery, failure, true)
        return runUnit(unit, reruns + 1, onEnd)
      }
      concludeUnit(unit, outcome, failure)
      onEnd()
    })
    if (!ended) running.set(unit, run)
  }

  const mayRerun = (unit: Unit.Unit, failure: Failure.Failure, reruns: number): boolean =>
    reruns < retry.immediate &&
    !stopping &&
    unit.hasUndecided() &&
    RetryPolicy.classify(retry, failure).startsWith("retry")

  const concludeUnit = (unit: Unit.Unit, outcome: Outcome, failure: Failure.Failure | undefined): void => {
    if (outcome._tag === "Interrupted") {
      const { decided, undecided } = unit.abandon()
      for (const [item, verdict] of decided) conclude(item, verdict, undefined)
      for (const item of undecided) settle(item, Settlement.Release())
    } else {
      for (const [item, verdict] of unit.close(failure === undefined ? "success" : "failure")) {
        if (failure !== undefined) reporter.failed(item.delivery, failure, false)
        conclude(item, verdict, failure)
      }
    }
    settler!.flush()
  }

  // --- settlement ---

  const conclude = (item: Item, verdict: Verdict, failure: Failure.Failure | undefined): void => {
    const settlement = judge.settlement(item.delivery, verdict, failure)
    // The credit is taken away before the retry goes out: the signal comes first.
    handlerGate.signal({ _tag: judge.signal(verdict, failure), id: item.key })
    settle(item, settlement)
  }

  /** Within the budget of dead letters, settles; beyond it, gives the message back and stops. */
  const settle = (item: Item, settlement: Settlement.Settlement): void => {
    if (judge.spend(settlement) === "Allowed") return settler!.settle(item, settlement)
    settler!.settle(item, Settlement.Release())
    if (stopping) return
    stopIntake()
    options.onFatal(new DeadLetterBudget.DeadLetterBudgetExhausted({ queue, max: options.budget!.max }))
  }

  const onSettled = (item: Item, settlement: Settlement.Settlement): void => {
    remembered.delete(item.delivery.metadata.id)
    brokerGate.signal({ _tag: "Succeeded", id: item.key })
    reporter.settled(item.delivery, settlement)
    finish(item)
  }

  const onSettleFailed: Parameters<typeof Settler.make>[0]["onFailed"] = (item, settlement, error) => {
    reporter.settleFailed(item.delivery, settlement, error)
    if (settlement._tag === "Ack") remembered.add(item.delivery.metadata.id)
    if (error.reason === "LeaseLost") handlerGate.signal({ _tag: "Failed", id: item.key })
    else brokerGate.signal({ _tag: "Failed", id: item.key })
    // The message must come back. While the connection lives, only giving it back makes it come.
    const isCopy = settlement._tag === "Retry" || settlement._tag === "DeadLetter"
    if (isCopy && error.reason !== "LeaseLost" && error.reason !== "ConnectionLost") {
      settle(item, Settlement.Release())
      settler!.flush()
    } else finish(item)
  }

  // --- lifecycle ---

  const keepLeases = (): void => {
    if (capabilities.lease === undefined) return
    timers.after(capabilities.lease.duration / 3, () => {
      settler!.extend(outstanding)
      keepLeases()
    })
  }

  const stopIntake = (): void => {
    if (stopping) return
    stopping = true
    updateCredit()
    for (const gate of gates) gate.close()
    for (const item of batcher.clear()) settle(item, Settlement.Release())
    settler?.flush()
  }

  return {
    handlers: {
      onDelivery,
      onReconnect: () => {
        // What had arrived and was not begun belongs to the lost connection, and is delivered again by the new one.
        for (const item of batcher.clear()) finish(item)
        for (const gate of gates) gate.signal({ _tag: "Reconnected" })
      }
    },
    start: (started) => {
      subscription = started
      settler = Settler.make({
        subscription: started,
        fork: options.fork,
        timers,
        batch: capabilities.settleBatch,
        wait: capabilities.settleWait,
        onSettled,
        onFailed: onSettleFailed,
        onLeaseLost: (item, error) => reporter.leaseLost(item.delivery, error)
      })
      keepLeases()
    },
    setConcurrency: (slots) => {
      concurrency = slots
      updateCredit()
      pump()
    },
    stopIntake,
    interrupt: () => {
      const units = [...running]
      for (const [, run] of units) run.interrupt()
      return units.reduce((sum, [unit]) => sum + unit.items.length, 0)
    },
    whenIdle: (callback) => {
      idleWaiters.push(callback)
      checkIdle()
    },
    stats: () => ({
      buffered: batcher.size(),
      inProgress: outstanding.size - batcher.size(),
      level: handlerGate.level()
    })
  }
}
