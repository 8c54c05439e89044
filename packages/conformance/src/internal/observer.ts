/** What a laboratory sees: handler runs, events, the broker's own view; and the waiting for it. */
import type { Broker, Consumer, Delivery, Event, Handler, Message } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Check from "../Check.ts"
import * as Control from "../Control.ts"
import type { Service as HarnessService } from "../Harness.ts"
import type { NotMeasurable } from "../Lateness.ts"
import type * as Recording from "../Recording.ts"
import * as Wait from "../Wait.ts"

/** One run of a handler for one message. Times are in milliseconds since the epoch. */
export interface Run {
  readonly id: string
  readonly body: unknown
  readonly attempts: number
  readonly headers: Message.Headers
  readonly timestamp: number
  readonly at: number
  /** Counts the handler's runs, from 0. */
  readonly batch: number
}

type EventTag = Event.Event["_tag"]
type EntryTag = Recording.Entry["_tag"]

/** What a delay is not to blame for. */
interface Way {
  /** Its lateness counts from then: the broker's confirmation was waited for. Default: from when it was asked. */
  readonly accepted?: number
  /** Exchanges with the broker that follow each other before it has ended, each as late as a control may be. Default 1. */
  readonly hops?: number
}

/** What a case can see, and wait for. */
export interface View {
  readonly log: ReadonlyArray<Recording.Entry>
  readonly runs: ReadonlyArray<Run>
  readonly events: ReadonlyArray<Event.Event>
  readonly eventsOf: <T extends EventTag>(tag: T) => ReadonlyArray<Extract<Event.Event, { _tag: T }>>
  readonly entriesOf: <T extends EntryTag>(tag: T) => ReadonlyArray<Extract<Recording.Entry, { _tag: T }>>
  /** Deliveries that came at their time; a consumer gives back the others until it is theirs. */
  readonly arrivals: () => ReadonlyArray<Extract<Recording.Entry, { _tag: "Delivered" }>>
  /** Waits until the condition holds; fails with `what` after the deadline. */
  readonly until: (what: string, condition: () => boolean, within?: number) => Effect.Effect<void, Check.CheckFailed>
  /** Waits until so many messages have been handed to a handler; then answers them. */
  readonly untilRuns: (count: number, within?: number) => Effect.Effect<ReadonlyArray<Run>, Check.CheckFailed>
  /** Waits until so many events of this kind have been told; then answers them. */
  readonly untilEvents: <T extends EventTag>(
    tag: T,
    count: number,
    within?: number
  ) => Effect.Effect<ReadonlyArray<Extract<Event.Event, { _tag: T }>>, Check.CheckFailed>
  /** Lets so much time pass that whatever is due now would have been seen. */
  readonly quiet: (millis?: number) => Effect.Effect<void>
  /**
   * A delay that was asked at `from` and ended at `at`: never early, and late by no more than the broker may be. Early
   * fails at once; how late it was is judged at the case's end, when the controls of the time in between are known.
   */
  readonly checkDelay: (what: string, delay: number, from: number, at: number, way?: Way) => void
  /** What must be so wherever the machine kept up from one moment until now; judged at the case's end as well. */
  readonly checkTimely: (what: string, actual: unknown, expected: unknown, from: number) => void
  /** Judges how late all that was late. Fails with `CheckFailed` or `NotMeasurable`. */
  readonly judgeLateness: Effect.Effect<void, Check.CheckFailed | NotMeasurable>
}

export interface Observer {
  readonly view: View
  readonly untilPending: (counts: Partial<Broker.Counts>, queue: string) => Effect.Effect<void, unknown>
  readonly untilDeadLetters: (count: number, queue: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  readonly ran: (messages: ReadonlyArray<Handler.Received<unknown>>) => void
  /** The options with an event hook that also writes down, and an end that does not take long. */
  readonly watch: (options: Consumer.Options) => Consumer.Options
}

/** Milliseconds between two looks at what is in this process. */
const pause = 5

/** Milliseconds that whatever must come is waited for. It decides nothing on a machine that is slow. */
const deadline = 60_000

export const make = (env: {
  readonly control: Control.Service
  readonly harness: HarnessService
  readonly now: () => number
  readonly log: ReadonlyArray<Recording.Entry>
  readonly slack: number
}): Observer => {
  const { control, harness, log, now, slack } = env
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  const arrivals: Array<Control.Arrival> = []
  let batches = 0

  const until = (what: Wait.What, condition: () => boolean, within = deadline) =>
    Effect.asVoid(
      Wait.found(
        what,
        Effect.sync(() => (condition() ? true : undefined)),
        { within, every: pause }
      )
    )

  const entriesOf: View["entriesOf"] = (tag) => log.filter((entry): entry is any => entry._tag === tag)
  const eventsOf: View["eventsOf"] = (tag) => events.filter((event): event is any => event._tag === tag)

  const view: View = {
    log,
    runs,
    events,
    entriesOf,
    eventsOf,
    arrivals: () => entriesOf("Delivered").filter(({ at, delivery }) => delivery.metadata.notBefore <= at),
    until,
    untilRuns: (count, within) =>
      Effect.as(
        until(
          () => `${count} handler runs, there were ${JSON.stringify(runs.map(({ attempts, id }) => [id, attempts]))}`,
          () => runs.length >= count,
          within
        ),
        runs
      ),
    untilEvents: (tag, count, within) =>
      Effect.map(
        until(`${count} events ${tag}`, () => eventsOf(tag).length >= count, within),
        () => eventsOf(tag)
      ),
    quiet: (millis = 100 + slack + harness.settleTime) => Effect.andThen(Effect.sleep(millis), control.pulse),
    checkDelay: (what, delay, from, at, { accepted = from, hops = 1 } = {}) => {
      const took = at - from
      Check.isTrue(`${what}: early, asked for ${delay} ms, came after ${took} ms`, took >= delay)
      const late = Math.max(0, at - accepted - delay)
      arrivals.push({ what: `${what}, asked for ${delay} ms`, late, bound: slack, from, at, hops })
    },
    checkTimely: (what, actual, expected, from) => {
      const difference = Check.difference(what, actual, expected)
      if (difference === undefined) return
      const reading = { what: difference, late: Number.POSITIVE_INFINITY, bound: harness.lateness }
      arrivals.push({ ...reading, from, at: now() })
    },
    judgeLateness: Effect.suspend(() => Control.check(control, arrivals))
  }

  return {
    view,
    ran: (messages) => {
      const [at, batch] = [now(), batches++]
      for (const { attempts, body, headers, id, timestamp } of messages) {
        runs.push({ id, body, attempts, headers, timestamp, at, batch })
      }
    },
    watch: (options) => ({
      drainTimeout: 5000,
      ...options,
      onEvent: (event) => {
        events.push(event)
        options.onEvent?.(event)
      }
    }),
    untilDeadLetters: (count, queue) =>
      Wait.found(
        `${count} dead letters in ${queue}`,
        Effect.map(harness.deadLetters(queue), (letters) => (letters.length >= count ? letters : undefined)),
        { within: deadline }
      ),
    untilPending: (wanted, queue) => {
      let seen: Broker.Counts | undefined
      return Wait.found(
        () => `${JSON.stringify(wanted)} messages in ${queue}, the broker says ${JSON.stringify(seen)}`,
        Effect.map(harness.pending(queue), (counts) => {
          seen = counts
          const differ = (["ready", "inFlight", "delayed"] as const).some(
            (key) => wanted[key] !== undefined && counts[key] !== undefined && counts[key] !== wanted[key]
          )
          return differ ? undefined : true
        }),
        { within: deadline }
      )
    }
  }
}
