/**
 * An outage, simulated: messages keep arriving while what their handler needs is down, and the policies decide what
 * becomes of them.
 *
 * Pure: the same scenario has the same outcome. What is simulated is the policies themselves (`RetryPolicy.decide`,
 * `ConsumerBackoff.step`), on a consumer with a number of handlers that each take a time. The broker takes none, and no
 * message is lost.
 */
import { Backoff, ConsumerBackoff, Delay, Failure, RetryPolicy } from "@requeue/core"
import * as History from "./History.ts"
import * as Prng from "./Prng.ts"
import * as Timeline from "./Timeline.ts"

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

type Happening =
  | { readonly _tag: "Arrival" }
  | { readonly _tag: "Due"; readonly message: Message }
  | { readonly _tag: "Finished"; readonly message: Message; readonly failed: boolean; readonly id: string }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "Mended" }

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
  const timeline = Timeline.make<Happening>()
  const ready: Array<Message> = []
  const count = { arrived: 0, succeeded: 0, deadLettered: 0, discarded: 0, handlerRuns: 0 }
  /** `early` arrived before the end of the outage, and are not done. */
  let [taken, running, delayed, early] = [0, 0, 0, 0]
  let gate = ConsumerBackoff.initial
  const held = (): number => ready.length - taken + running + delayed

  const signal = (event: ConsumerBackoff.Event): void => {
    const [after, commands] = ConsumerBackoff.step(consumerBackoff, gate, event, spread())
    gate = after
    for (const command of commands) if (command._tag === "Wait") timeline.after(command.millis, { _tag: "Elapsed" })
  }
  const mayStart = (): boolean =>
    running < concurrency &&
    (gate.mode._tag === "Running" || (gate.mode._tag === "Probing" && gate.mode.probe === undefined))

  /** A delivery: its handler runs until it succeeds, or its retries in the process are used up. */
  const start = (message: Message): void => {
    message.attempts++
    running++
    const id = String(timeline.planned())
    signal({ _tag: "Started", id })
    const failing = Math.ceil(Math.max(0, outage - timeline.now()) / handlerTime)
    const runs = Math.min(failing + 1, retry.immediate + 1)
    count.handlerRuns += runs
    timeline.after(runs * handlerTime, { _tag: "Finished", message, failed: runs <= failing, id })
  }

  const done = (message: Message, as: "succeeded" | "deadLettered" | "discarded"): void => {
    count[as]++
    if (message.arrivedAt <= outage) early--
  }

  const settle = (message: Message): void => {
    const settlement = RetryPolicy.decide(retry, {
      queue: "simulated",
      attempts: message.attempts,
      age: timeline.now() - message.arrivedAt,
      delay: undefined,
      asked: false,
      failure,
      defaultDelay: retryDelay,
      random: spread()
    })
    if (settlement._tag !== "Retry")
      return done(message, settlement._tag === "DeadLetter" ? "deadLettered" : "discarded")
    delayed++
    timeline.after(settlement.delay, { _tag: "Due", message })
  }

  const nextArrival = (): void => timeline.after((-Math.log(1 - arrivals()) * 1000) / rate, { _tag: "Arrival" })

  const happen = (happening: Happening): void => {
    switch (happening._tag) {
      case "Arrival":
        count.arrived++
        if (timeline.now() <= outage) early++
        ready.push({ arrivedAt: timeline.now(), attempts: 0 })
        return nextArrival()
      case "Due":
        delayed--
        ready.push(happening.message)
        return
      case "Finished":
        running--
        signal({ _tag: happening.failed ? "Failed" : "Succeeded", id: happening.id })
        return happening.failed ? settle(happening.message) : done(happening.message, "succeeded")
      case "Elapsed":
        return signal(happening)
      case "Mended":
        return
    }
  }

  const end = horizon(scenario)
  const history = History.make(Math.max(outage / 40, end / 10_000))
  nextArrival()
  timeline.after(outage, { _tag: "Mended" })
  let recovery: number | undefined
  while (recovery === undefined) {
    const happening = timeline.next()
    if (happening === undefined || timeline.now() > end || timeline.planned() > limit) break
    happen(happening)
    while (taken < ready.length && mayStart()) start(ready[taken++]!)
    history.note(timeline.now(), held())
    if (timeline.now() >= outage && early === 0) recovery = timeline.now() - outage
  }
  const { peak, slice, values } = history.all()
  return { ...count, left: held(), recovery, peakBacklog: peak, backlog: values, slice }
}
