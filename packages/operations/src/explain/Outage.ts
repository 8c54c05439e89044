/**
 * A simulated outage: messages keep arriving while a dependency of their handler is down.
 *
 * When to use: to see what a policy does before the outage comes. Pure: the same scenario has the same outcome. The policies
 * are the real ones (`RetryPolicy.decide`, `BackoffState.step`, `RateLimitState.decide`). They run on a consumer with a number of handlers, each of
 * which takes a fixed time. The broker takes no time and loses no message.
 */
import { Backoff, type ConsumerBackoff, Failure, type RateLimit, RetryPolicy } from "@requeue/core"
import { BackoffState, RateLimitState } from "@requeue/core/port"
import * as History from "./internal/history.ts"
import * as Prng from "./internal/prng.ts"
import type { Scenario } from "./internal/scenario.ts"
import * as Timeline from "./internal/timeline.ts"

export { maxMessages, type Question, type Refusal, type Scenario, scenario } from "./internal/scenario.ts"

/** The result of a simulation. Times are in milliseconds. */
export interface Outcome {
  readonly arrived: number
  readonly succeeded: number
  readonly deadLettered: number
  /** The number of messages that a policy without dead letters discarded. */
  readonly discarded: number
  /** The number of messages that were not done when the simulation ended. */
  readonly left: number
  readonly handlerRuns: number
  /** The number of redeliveries of all messages together. */
  readonly retries: number
  /** The largest number of messages that were ready, delayed or in progress. */
  readonly peakBacklog: number
  /**
   * The time from the end of the outage until all messages from before its end are done; `undefined` if that did not
   * happen.
   */
  readonly recovery: number | undefined
  /** The largest backlog in each slice of time. */
  readonly backlog: ReadonlyArray<number>
  /** The number of handler runs that begin in each slice of time, which is the load on the dependency. */
  readonly load: ReadonlyArray<number>
  /** The length of a slice. */
  readonly slice: number
  /** Whether the simulation ended early, because it had too many events. */
  readonly isCut: boolean
  /** The number of simulated events. */
  readonly events: number
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
  | { readonly _tag: "Allowed" }
  | { readonly _tag: "OutageEnded" }

const failure = Failure.make(new Error("the dependency is down"), 0)

/** The default for the largest number of events of a simulation. */
export const maxEvents = 5_000_000

/** Events between two steps of a simulation. */
const stride = 1000

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
  let gate = BackoffState.initial
  return {
    signal: (event: BackoffState.Event): void => {
      const [after, commands] = BackoffState.step(policy, gate, event, timeline.now(), random())
      gate = after
      for (const command of commands) if (command._tag === "Wait") timeline.after(command.millis, { _tag: "Elapsed" })
    },
    isOpen: (): boolean =>
      gate.mode._tag === "Running" || (gate.mode._tag === "Probing" && gate.mode.probe === undefined)
  }
}

/** The consumer's rate limit on a timeline. Immediate retries count when their delivery begins, and need room by then. */
const makeLimiter = (limit: RateLimit.RateLimit | undefined, timeline: Timeline.Timeline<Event>) => {
  let state = RateLimitState.initial
  const decide = (of: RateLimit.RateLimit) => {
    state = RateLimitState.at(of, state, timeline.now())
    return RateLimitState.decide(of, state, timeline.now())
  }
  return {
    /** Counts runs. There must be room for them. */
    begun: (runs: number): void => {
      if (limit === undefined) return
      for (let run = 0; run < runs; run++) state = RateLimitState.begin(state, timeline.now())
      const { room, wait } = decide(limit)
      if (room === 0) timeline.after(wait, { _tag: "Allowed" })
    },
    room: (): number => (limit === undefined ? Number.POSITIVE_INFINITY : decide(limit).room)
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

/** The handler of a scenario: how often it runs in one delivery, at most `most` times, and whether it has failed then. */
const makeHandler = ({ handlerTime, outage, retry, seed, share = 1 }: Scenario) => {
  const draw = Prng.make(seed ^ 0x27d4eb2f)
  return (now: number, most: number): { readonly runs: number; readonly failed: boolean } => {
    const isDown = (run: number) => now + run * handlerTime < outage
    let runs = 0
    do {
      const failed = isDown(runs) && draw() < share
      runs++
      if (!failed) return { runs, failed }
    } while (runs <= retry.immediate && runs < most)
    return { runs, failed: true }
  }
}

/** Handler runs by the slice in which they begin. */
const makeLoad = (slice: number) => {
  const counts: Array<number> = []
  return {
    begun: (at: number): void => {
      const index = Math.floor(at / slice)
      while (counts.length <= index) counts.push(0)
      counts[index]!++
    },
    /** All slices, at least `length`. */
    all: (length: number): ReadonlyArray<number> => [
      ...counts,
      ...Array.from({ length: Math.max(0, length - counts.length) }, () => 0)
    ]
  }
}

/**
 * Simulates one outage in steps of 1,000 events, so a server can do other work between them. It ends early
 * after `most` events.
 */
// Long, because the events of a simulation share what they change.
export function* steps(scenario: Scenario, most = maxEvents): Generator<undefined, Outcome, undefined> {
  const { concurrency, consumerBackoff, handlerTime, outage, rate, seed } = scenario
  const arrivals = Prng.make(seed)
  const spread = Prng.make(seed ^ 0x5bd1e995)
  const timeline = Timeline.make<Event>()
  const gate = makeGate(consumerBackoff, timeline, spread)
  const limiter = makeLimiter(scenario.rateLimit, timeline)
  const handler = makeHandler(scenario)
  const end = horizon(scenario)
  const slice = Math.max(outage / 40, end / 10_000)
  const [history, load] = [History.make(slice), makeLoad(slice)]
  const ready: Array<Message> = []
  const count = { arrived: 0, succeeded: 0, deadLettered: 0, discarded: 0, handlerRuns: 0, retries: 0 }
  /** `early` counts messages that arrived before the end of the outage and are not done. */
  let [taken, running, delayed, early, events] = [0, 0, 0, 0, 0]
  const held = (): number => ready.length - taken + running + delayed

  /** Delivers a message. Its handler runs until it succeeds, or no immediate retry is left or allowed. */
  const start = (message: Message): void => {
    if (message.attempts++ > 0) count.retries++
    running++
    const id = String(timeline.planned())
    gate.signal({ _tag: "Started", id })
    const { failed, runs } = handler(timeline.now(), limiter.room())
    count.handlerRuns += runs
    limiter.begun(runs)
    for (let run = 0; run < runs; run++) load.begun(timeline.now() + run * handlerTime)
    timeline.after(runs * handlerTime, { _tag: "Finished", message, failed, id })
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
      case "Allowed":
      case "OutageEnded":
        return
    }
  }

  nextArrival()
  timeline.after(outage, { _tag: "OutageEnded" })
  let recovery: number | undefined
  while (recovery === undefined && events < most) {
    const event = timeline.next()
    if (event === undefined || timeline.now() > end) break
    if (++events % stride === 0) yield
    handle(event)
    while (taken < ready.length && running < concurrency && gate.isOpen() && limiter.room() > 0) start(ready[taken++]!)
    history.note(timeline.now(), held())
    if (timeline.now() >= outage && early === 0) recovery = timeline.now() - outage
  }
  const { peak, values } = history.all()
  return {
    ...count,
    left: held(),
    recovery,
    peakBacklog: peak,
    backlog: values,
    load: load.all(values.length),
    slice,
    isCut: recovery === undefined && events >= most,
    events
  }
}

/** Simulates one outage without pauses, which may take some seconds. {@link steps} leaves time for other work. */
export const run = (scenario: Scenario, most = maxEvents): Outcome => {
  const running = steps(scenario, most)
  for (;;) {
    const step = running.next()
    if (step.done === true) return step.value
  }
}
