/**
 * A simulated outage: messages keep arriving while something that their handler needs is down.
 *
 * Pure: the same scenario has the same outcome. The policies are the real ones (`RetryPolicy.decide`,
 * `ConsumerBackoff.step`). They run on a consumer with a number of handlers, each of which takes a fixed time. The broker
 * takes no time and loses no message.
 */
import { Backoff, ConsumerBackoff, Delay, Failure, RetryPolicy } from "@requeue/core"
import * as History from "./History.ts"
import * as Prng from "./Prng.ts"
import * as Timeline from "./Timeline.ts"

/** The outage to simulate. Times are in milliseconds. */
export interface Scenario {
  readonly retry: RetryPolicy.RetryPolicy
  /** The consumer's delay, for retries for which the policy has none. */
  readonly retryDelay: Delay.Delay
  readonly consumerBackoff: ConsumerBackoff.ConsumerBackoff
  /** Messages a second, on average; they arrive independently of each other. */
  readonly rate: number
  /** The length of the outage, which begins with the simulation. */
  readonly outage: number
  readonly handlerTime: number
  readonly concurrency: number
  readonly seed: number
}

/** The result of a simulation. Times are in milliseconds. */
export interface Outcome {
  readonly arrived: number
  readonly succeeded: number
  readonly deadLettered: number
  /** Messages given up by a policy that keeps no dead letters. */
  readonly discarded: number
  /** Messages that were not done when the simulation ended. */
  readonly left: number
  readonly handlerRuns: number
  /** The largest number of messages that were ready, delayed or in progress. */
  readonly peakBacklog: number
  /** The time from the end of the outage until all messages from before it are done; `undefined` when they never are. */
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

type Event =
  | { readonly _tag: "Arrival" }
  | { readonly _tag: "Due"; readonly message: Message }
  | { readonly _tag: "Finished"; readonly message: Message; readonly failed: boolean; readonly id: string }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "OutageEnded" }

const failure = Failure.make(new Error("the dependency is down"), 0)

/** The largest number of events of a simulation. */
const limit = 5_000_000

/** The longest time of a simulation: all retries have come by then, and the consumer has had time to recover. */
const horizon = ({ outage, retry, retryDelay }: Scenario): number => {
  const longest = retry.backoff === undefined ? retryDelay : Backoff.longest(retry.backoff)
  return outage + Math.min(RetryPolicy.describe(retry, retryDelay).worstCase, 2 * longest) + 2 * outage + 3_600_000
}

/** The consumer's backoff on a timeline. */
const makeGate = (
  policy: ConsumerBackoff.ConsumerBackoff,
  timeline: Timeline.Timeline<Event>,
  random: () => number
) => {
  let gate = ConsumerBackoff.initial
  return {
    signal: (event: ConsumerBackoff.Event): void => {
      const [after, commands] = ConsumerBackoff.step(policy, gate, event, random())
      gate = after
      for (const command of commands) if (command._tag === "Wait") timeline.after(command.millis, { _tag: "Elapsed" })
    },
    isOpen: (): boolean =>
      gate.mode._tag === "Running" || (gate.mode._tag === "Probing" && gate.mode.probe === undefined)
  }
}

/** Decides about a message whose handler has failed; `age` is in milliseconds. */
const decide = ({ retry, retryDelay }: Scenario, attempts: number, age: number, random: number) =>
  RetryPolicy.decide(retry, {
    queue: "simulated",
    attempts,
    age,
    delay: undefined,
    asked: false,
    failure,
    defaultDelay: retryDelay,
    random
  })

/** Simulates one outage. */
export const run = (scenario: Scenario): Outcome => {
  const { concurrency, consumerBackoff, handlerTime, outage, rate, retry, seed } = scenario
  const arrivals = Prng.make(seed)
  const spread = Prng.make(seed ^ 0x5bd1e995)
  const timeline = Timeline.make<Event>()
  const gate = makeGate(consumerBackoff, timeline, spread)
  const ready: Array<Message> = []
  const count = { arrived: 0, succeeded: 0, deadLettered: 0, discarded: 0, handlerRuns: 0 }
  /** `early` counts messages that arrived before the end of the outage and are not done. */
  let [taken, running, delayed, early] = [0, 0, 0, 0]
  const held = (): number => ready.length - taken + running + delayed

  /** Delivers a message. Its handler runs until it succeeds, or its immediate retries are used up. */
  const start = (message: Message): void => {
    message.attempts++
    running++
    const id = String(timeline.planned())
    gate.signal({ _tag: "Started", id })
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
    const settlement = decide(scenario, message.attempts, timeline.now() - message.arrivedAt, spread())
    if (settlement._tag !== "Retry")
      return done(message, settlement._tag === "DeadLetter" ? "deadLettered" : "discarded")
    delayed++
    timeline.after(settlement.delay, { _tag: "Due", message })
  }

  const nextArrival = (): void => timeline.after((-Math.log(1 - arrivals()) * 1000) / rate, { _tag: "Arrival" })

  const handle = (event: Event): void => {
    switch (event._tag) {
      case "Arrival":
        count.arrived++
        if (timeline.now() <= outage) early++
        ready.push({ arrivedAt: timeline.now(), attempts: 0 })
        return nextArrival()
      case "Due":
        delayed--
        ready.push(event.message)
        return
      case "Finished":
        running--
        gate.signal({ _tag: event.failed ? "Failed" : "Succeeded", id: event.id })
        return event.failed ? settle(event.message) : done(event.message, "succeeded")
      case "Elapsed":
        return gate.signal(event)
      case "OutageEnded":
        return
    }
  }

  const end = horizon(scenario)
  const history = History.make(Math.max(outage / 40, end / 10_000))
  nextArrival()
  timeline.after(outage, { _tag: "OutageEnded" })
  let recovery: number | undefined
  while (recovery === undefined) {
    const event = timeline.next()
    if (event === undefined || timeline.now() > end || timeline.planned() > limit) break
    handle(event)
    while (taken < ready.length && running < concurrency && gate.isOpen()) start(ready[taken++]!)
    history.note(timeline.now(), held())
    if (timeline.now() >= outage && early === 0) recovery = timeline.now() - outage
  }
  const { peak, slice, values } = history.all()
  return { ...count, left: held(), recovery, peakBacklog: peak, backlog: values, slice }
}
