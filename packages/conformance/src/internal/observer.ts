/** The observations of a laboratory: handler runs, events and the broker's own numbers; and how to wait for them. */
import type { Broker, Consumer, Delivery, Event, Handler, Message } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { CheckFailed } from "../Check.ts"
import type * as Control from "../Control.ts"
import type { Service as HarnessService } from "../Harness.ts"
import type * as Recording from "../Recording.ts"
import * as Wait from "../Wait.ts"
import * as Lateness from "./lateness.ts"

/** One run of a handler for one message. Times are in milliseconds since 1970. */
export interface Run {
  readonly id: string
  readonly body: unknown
  readonly attempts: number
  readonly headers: Message.Headers
  readonly timestamp: number
  /** When it began. */
  readonly at: number
  /** The number of the handler run, from 0; messages of a batch share it. */
  readonly batch: number
}

type EventTag = Event.Event["_tag"]
type EntryTag = Recording.Entry["_tag"]

const hasTag =
  <T extends string>(tag: T) =>
  <A extends { readonly _tag: string }>(it: A): it is Extract<A, { _tag: T }> =>
    it._tag === tag

/** The observations of a case. `within` is in milliseconds; default 120,000. */
export interface View extends Lateness.Checks {
  /** All calls between the core and the broker, in order. */
  readonly log: ReadonlyArray<Recording.Entry>
  /** All handler runs, in the order in which they began. */
  readonly runs: ReadonlyArray<Run>
  /** All events of all consumers, in order. */
  readonly events: ReadonlyArray<Event.Event>
  /** Returns the events of one kind. */
  readonly eventsOf: <T extends EventTag>(tag: T) => ReadonlyArray<Extract<Event.Event, { _tag: T }>>
  /** Returns the entries of the log of one kind. */
  readonly entriesOf: <T extends EntryTag>(tag: T) => ReadonlyArray<Extract<Recording.Entry, { _tag: T }>>
  /** The deliveries that arrived at their time or later. A consumer returns early deliveries to the queue. */
  readonly arrivals: () => ReadonlyArray<Extract<Recording.Entry, { _tag: "Delivered" }>>
  /** Waits until a condition holds; fails with `what` in its message. */
  readonly until: (what: string, condition: () => boolean, within?: number) => Effect.Effect<void, CheckFailed>
  /** Waits until there are at least this many handler runs, and returns them. */
  readonly untilRuns: (count: number, within?: number) => Effect.Effect<ReadonlyArray<Run>, CheckFailed>
  /** Waits until there are at least this many events of one kind, and returns them. */
  readonly untilEvents: <T extends EventTag>(
    tag: T,
    count: number,
    within?: number
  ) => Effect.Effect<ReadonlyArray<Extract<Event.Event, { _tag: T }>>, CheckFailed>
  /** Waits until everything that is due now has been seen. Default: as long as broker and harness need. */
  readonly quiet: (millis?: number) => Effect.Effect<void>
}

/** An observer and its hooks. */
export interface Observer {
  readonly view: View
  readonly untilPending: (counts: Partial<Broker.Counts>, queue: string) => Effect.Effect<void, unknown>
  readonly untilDeadLetters: (count: number, queue: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  readonly ran: (messages: ReadonlyArray<Handler.Received<unknown>>) => void
  /** Adds to a consumer's options a hook that records events, and a short drain timeout as the default. */
  readonly watch: (options: Consumer.Options) => Consumer.Options
}

/** Milliseconds between two checks of this process's state. */
const pollInterval = 5

/** Milliseconds to wait for what must arrive: enough for any slow machine. */
const deadline = 120_000

/**
 * Waits for what the harness sees in the broker. Counts must hold for the harness's `settleTime`: for example, nsqd counts a
 * message nowhere while it hands the message to a client.
 */
const makeWaits = (
  harness: HarnessService,
  now: () => number
): Pick<Observer, "untilDeadLetters" | "untilPending"> => ({
  untilDeadLetters: (count, queue) =>
    Wait.found(
      `${count} dead letters in ${queue}`,
      Effect.map(harness.deadLetters(queue), (letters) => (letters.length >= count ? letters : undefined)),
      { within: deadline }
    ),
  untilPending: (wanted, queue) =>
    Effect.suspend(() => {
      let seen: Broker.Counts | undefined
      let since: number | undefined
      return Wait.found(
        () => `${JSON.stringify(wanted)} messages in ${queue}, the broker says ${JSON.stringify(seen)}`,
        Effect.map(harness.pending(queue), (counts) => {
          seen = counts
          const differ = (["ready", "inFlight", "delayed"] as const).some(
            (key) => wanted[key] !== undefined && counts[key] !== undefined && counts[key] !== wanted[key]
          )
          since = differ ? undefined : (since ?? now())
          return since !== undefined && now() - since >= harness.settleTime ? true : undefined
        }),
        { within: deadline }
      )
    })
})

/** Makes the observer of one case. `slack` is the milliseconds by which a due message may be late. */
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
  let batches = 0

  const until = (what: Wait.What, condition: () => boolean, within = deadline) =>
    Effect.asVoid(
      Wait.found(
        what,
        Effect.sync(() => (condition() ? true : undefined)),
        { within, every: pollInterval }
      )
    )

  const entriesOf: View["entriesOf"] = (tag) => log.filter(hasTag(tag))
  const eventsOf: View["eventsOf"] = (tag) => events.filter(hasTag(tag))

  const view: View = {
    ...Lateness.make({ bound: harness.lateness, control, now, slack }),
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
    quiet: (millis = 100 + slack + harness.settleTime) => Effect.andThen(Effect.sleep(millis), control.pulse)
  }

  return {
    ...makeWaits(harness, now),
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
    })
  }
}
