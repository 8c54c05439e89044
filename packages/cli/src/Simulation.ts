/**
 * An outage, simulated: messages keep arriving while what their handler needs is down, and the policies decide what
 * becomes of them.
 *
 * Pure: the same scenario has the same outcome. What is simulated is the policies themselves (`RetryPolicy.decide`,
 * `ConsumerBackoff.step`), on a consumer with a number of handlers that each take a time. The broker takes none, and no
 * message is lost.
 */
import * as Backoff from "@requeue/core/Backoff"
import * as ConsumerBackoff from "@requeue/core/ConsumerBackoff"
import * as Delay from "@requeue/core/Delay"
import * as Failure from "@requeue/core/Failure"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import TinyQueue from "tinyqueue"
import * as Prng from "./Prng.ts"

/** Times are in milliseconds. */
export interface Scenario {
  readonly retry: RetryPolicy.RetryPolicy
  /** The consumer's delay of retries for which the policy has none. */
  readonly retryDelay: Delay.Delay
  readonly consumerBackoff: ConsumerBackoff.ConsumerBackoff
  /** Messages a second, on average; they arrive independently of each other. */
  readonly rate: number
  /** The outage begins with the simulation, and lasts so long. */
  readonly outage: number
  readonly handlerTime: number
  readonly concurrency: number
  readonly seed: number
}

export interface Outcome {
  readonly arrived: number
  readonly succeeded: number
  readonly deadLettered: number
  /** Given up by a policy that keeps no dead letters. */
  readonly discarded: number
  /** Not yet done when the simulation ended. */
  readonly left: number
  readonly handlerRuns: number
  /** Most messages that waited, were delayed or were in progress. */
  readonly peakBacklog: number
  /** From the end of the outage until no message of before is left; `undefined` when that never came. */
  readonly recovery: number | undefined
  /** The largest backlog in each slice of time. */
  readonly backlog: ReadonlyArray<number>
  /** The length of a slice. */
  readonly slice: number
}

interface Message {
  readonly arrivedAt: number
  attempts: number
}

type Event = { readonly at: number; readonly order: number } & (
  | { readonly _tag: "Arrival" }
  | { readonly _tag: "Due"; readonly message: Message }
  | { readonly _tag: "Finished"; readonly message: Message; readonly failed: boolean; readonly id: string }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "Mended" }
)

type What<E = Event> = E extends Event ? Omit<E, "at" | "order"> : never

const failure = Failure.make(new Error("the dependency is down"), 0)

/** No simulation has more events. */
const limit = 5_000_000

/** What is not over by then, never is: the longest delay has passed, and as much time as the outage took. */
const horizon = ({ outage, retry, retryDelay }: Scenario): number => {
  const longest = retry.backoff === undefined ? retryDelay : Backoff.longest(retry.backoff)
  return outage + Math.min(RetryPolicy.describe(retry, retryDelay).worstCase, 2 * longest) + 2 * outage + 3_600_000
}

/** Simulates one outage. */
export const run = (scenario: Scenario): Outcome => {
  const { concurrency, consumerBackoff, handlerTime, outage, rate, retry, retryDelay, seed } = scenario
  const arrivals = Prng.make(seed)
  const spread = Prng.make(seed ^ 0x5bd1e995)
  const events = new TinyQueue<Event>([], (a, b) => a.at - b.at || a.order - b.order)
  const ready: Array<Message> = []
  const count = { arrived: 0, succeeded: 0, deadLettered: 0, discarded: 0, handlerRuns: 0, peakBacklog: 0 }
  const slice = Math.max(1, outage / 40)
  const backlog: Array<number> = []
  const end = horizon(scenario)
  let [now, order, taken, running, allowance, early, ids] = [0, 0, 0, 0, Number.POSITIVE_INFINITY, 0, 0]
  let gate = ConsumerBackoff.initial

  const schedule = (after: number, what: What): void => {
    events.push({ ...what, at: now + after, order: order++ })
  }
  const nextArrival = (): void => schedule((-Math.log(1 - arrivals()) * 1000) / rate, { _tag: "Arrival" })
  const left = (): number => count.arrived - count.succeeded - count.deadLettered - count.discarded

  const signal = (event: ConsumerBackoff.Event): void => {
    const [after, commands] = ConsumerBackoff.step(consumerBackoff, gate, event, spread())
    gate = after
    for (const command of commands) {
      if (command._tag === "Wait") schedule(command.millis, { _tag: "Elapsed" })
      else allowance = { none: 0, one: 1, full: Number.POSITIVE_INFINITY }[command.amount]
    }
  }
  const mayStart = (): boolean =>
    gate.mode._tag === "Running" || (gate.mode._tag === "Probing" && gate.mode.probe === undefined)

  /** A delivery: its handler runs until it succeeds, or its retries in the process are used up. */
  const start = (message: Message): void => {
    message.attempts++
    running++
    const id = String(ids++)
    signal({ _tag: "Started", id })
    const failing = Math.ceil(Math.max(0, outage - now) / handlerTime)
    const runs = Math.min(failing + 1, retry.immediate + 1)
    count.handlerRuns += runs
    schedule(runs * handlerTime, { _tag: "Finished", message, failed: runs <= failing, id })
  }

  const done = (message: Message): void => {
    if (message.arrivedAt <= outage) early--
  }

  const settle = (message: Message): void => {
    const settlement = RetryPolicy.decide(retry, {
      queue: "simulated",
      attempts: message.attempts,
      age: now - message.arrivedAt,
      delay: undefined,
      asked: false,
      failure,
      defaultDelay: retryDelay,
      random: spread()
    })
    if (settlement._tag === "Retry") return schedule(settlement.delay, { _tag: "Due", message })
    count[settlement._tag === "DeadLetter" ? "deadLettered" : "discarded"]++
    done(message)
  }

  const handle = (event: Event): void => {
    switch (event._tag) {
      case "Arrival":
        count.arrived++
        if (now <= outage) early++
        ready.push({ arrivedAt: now, attempts: 0 })
        return nextArrival()
      case "Due":
        ready.push(event.message)
        return
      case "Finished":
        running--
        signal({ _tag: event.failed ? "Failed" : "Succeeded", id: event.id })
        if (event.failed) return settle(event.message)
        count.succeeded++
        return done(event.message)
      case "Elapsed":
        return signal(event)
      case "Mended":
        return
    }
  }

  const fill = (): void => {
    while (taken < ready.length && running < Math.min(concurrency, allowance) && mayStart()) start(ready[taken++]!)
  }

  const look = (): void => {
    const waiting = left()
    const at = Math.floor(now / slice)
    while (backlog.length <= at) backlog.push(waiting)
    backlog[at] = Math.max(backlog[at]!, waiting)
    count.peakBacklog = Math.max(count.peakBacklog, waiting)
  }

  nextArrival()
  schedule(outage, { _tag: "Mended" })
  let recovery: number | undefined
  for (let event = events.pop(); event !== undefined && event.at <= end && order < limit; event = events.pop()) {
    now = event.at
    handle(event)
    fill()
    look()
    if (now >= outage && early === 0) {
      recovery = now - outage
      break
    }
  }
  return { ...count, left: left(), recovery, backlog, slice }
}
