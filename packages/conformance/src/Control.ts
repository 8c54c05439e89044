/**
 * Controls: timers and messages that only a late machine makes late.
 *
 * Two kinds run all the time. A timer of this process shows the lateness of the event loop and of the system's scheduler. An
 * echo, which is an undelayed message through the same broker and the same connection, shows that of the broker's process
 * and of the way there and back. {@link Lateness} compares what a test saw to the controls of the same time.
 */
import { Backoff, type Broker, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { CheckFailed } from "./Check.ts"
import * as Lateness from "./Lateness.ts"
import * as Workload from "./Workload.ts"

/** Controls that are kept going. */
export interface Service {
  /**
   * Answers by how many milliseconds the latest control of a window was late; 0 when none was. The window's ends are in
   * milliseconds since 1970. Waits until the controls that began in the window have ended. Fails when one is lost: it did
   * not come within a minute, though no connection broke.
   */
  readonly lateness: (from: number, to: number) => Effect.Effect<number, CheckFailed>
  /** Milliseconds by which two clocks, of the broker and of a test, may differ in what they call a time. */
  readonly precision: number
  /** Waits for the end of controls that begin now. By then a test has seen everything that was under way before. */
  readonly pulse: Effect.Effect<void>
  /** Whether {@link check} passes whatever is late: nothing is early, lost or counted wrongly then, and that is all. */
  readonly ignoresLateness?: boolean
}

/** Something that a test saw come, and when. {@link check} compares it to the controls of its time. */
export interface Arrival extends Omit<Lateness.Reading, "control"> {
  /** When it was asked for, in milliseconds since 1970. */
  readonly from: number
  /** When it came, in milliseconds since 1970. */
  readonly at: number
  /** How often it went through the broker; it may be late by as many controls. Default 1. */
  readonly hops?: number
}

/**
 * Compares each arrival to the controls of its own time, and fails as {@link Lateness.check} does. `share` is the part of
 * the arrivals that may be late, from 0 to below 1. Default 0.
 */
export const check = (
  { ignoresLateness = false, lateness }: Service,
  arrivals: ReadonlyArray<Arrival>,
  share?: number
): Effect.Effect<void, CheckFailed | Lateness.NotMeasurable> =>
  Effect.flatMap(
    Effect.forEach(
      ignoresLateness ? arrivals.filter(({ late }) => late < 0) : arrivals,
      ({ at, bound, from, hops = 1, late, what }) =>
        Effect.map(lateness(from, at), (control): Lateness.Reading => ({ what, late, bound, control: hops * control })),
      { concurrency: "unbounded" }
    ),
    (readings) => Lateness.check(readings, share)
  )

/** The controls for virtual time, in which nothing is late. */
export const none: Service = { lateness: () => Effect.succeed(0), precision: 0, pulse: Effect.void }

/**
 * Milliseconds: both clocks tell whole ones, and a timer counts from the beginning of the turn of the event loop in which
 * it was set.
 */
const precision = 2

/** For real time without controls: whatever is late passes. What comes early by more than the clocks differ still fails. */
export const ignored: Service = { ...none, precision, ignoresLateness: true }

/** The controls at hand. The suite provides them in real time. Default: {@link none}. */
export const Control = Context.Reference<Service>("@requeue/conformance/Control", { defaultValue: () => none })

/** Milliseconds from one timer to the next. */
const timerInterval = 10

/** Milliseconds from one echo to the next. */
const echoInterval = 100

/** Milliseconds for which late controls and lost echoes are remembered. */
const retention = 15 * 60_000

/** Milliseconds after which an echo is lost. */
const echoTimeout = 60_000

/** While so many echoes are under way, no other is sent. */
const maxEchoes = 20

const first = "e0"

/** The time that a control took; it should have taken none. */
interface Span {
  readonly from: number
  readonly to: number
}

/** Remembers the spans of late controls. */
const makeSpans = (now: () => number) => {
  let [spans, swept]: [Array<Span>, number] = [[], now()]
  return {
    /** Records a control that began at `from` and ends now. */
    end: (from: number): void => {
      const to = now()
      if (to - from > 1) spans.push({ from, to })
      if (to - swept < retention) return
      swept = to
      spans = spans.filter((span) => span.to > to - retention)
    },
    /** Answers the milliseconds of the longest span that touches a window. */
    longest: (from: number, to: number): number =>
      spans
        .filter((span) => span.to >= from && span.from <= to)
        .reduce((longest, span) => Math.max(longest, span.to - span.from), 0)
  }
}

/** Keeps the controls of a broker going, on a queue that nobody else uses, until the scope closes. */
export const make = (broker: Broker.Service, queue: string): Effect.Effect<Service, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const fork = Effect.runForkWith(yield* Effect.context())
    /** When echoes that have not come back were sent, by their ids. */
    const open = new Map<string, number>()
    const spans = makeSpans(now)
    let echoes = 0

    const subscription = yield* broker.subscribe({
      queue,
      // A backoff, without which a queue that delays by itself cannot be planned. Nothing is retried here.
      retry: RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("1 second") }),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: (delivery) => {
        const sent = open.get(delivery.metadata.id)
        // The first echo does not count: it opens the connections that the others use.
        if (sent !== undefined && delivery.metadata.id !== first) spans.end(sent)
        open.delete(delivery.metadata.id)
        fork(subscription.settle([{ delivery, settlement: Settlement.Ack }]))
      },
      // An echo that a broken connection took with it says nothing about the machine.
      onReconnect: () => open.clear()
    })
    subscription.credit(maxEchoes)

    const echo = Effect.suspend(() => {
      // A lost echo is reported for as long as somebody may ask for its window.
      for (const [id, sent] of open) if (now() - sent > retention) open.delete(id)
      if (open.size >= maxEchoes) return Effect.void
      const id = `e${echoes++}`
      open.set(id, now())
      const publish = Effect.suspend(() => broker.publish([Workload.outgoing(queue, id, { now: now() })]))
      return Effect.catchCause(publish, () => Effect.sync(() => open.delete(id)))
    })
    // Counts from one waking to the next, so that no time in between is missed.
    let [woken, wakings] = [now(), 0]
    const timer = Effect.map(Effect.sleep(timerInterval), () => {
      spans.end(woken + timerInterval)
      woken = now()
      wakings++
    })

    /** Waits for so many wakings of the timer. They are counted, because the time of day may be set back. */
    const wakes = (count: number): Effect.Effect<void> =>
      Effect.suspend(() => (wakings >= count ? Effect.void : Effect.andThen(Effect.sleep(timerInterval), wakes(count))))

    /** Waits until the echoes that were sent by then are back, or lost. */
    const returned = (until: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        const [first] = [...open.values()].filter((sent) => sent <= until && now() - sent < echoTimeout)
        return first === undefined ? Effect.void : Effect.andThen(Effect.sleep(timerInterval), returned(until))
      })

    yield* Effect.forkScoped(Effect.forever(timer))
    // An echo does not wait for the one before: while the broker stands still, several are late by as much.
    const send = Effect.sync(() => fork(echo))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(send, Effect.sleep(echoInterval))))

    return {
      lateness: (from, to) =>
        Effect.gen(function* () {
          // Not before its next waking has the timer told of what held it up.
          yield* wakes(wakings + 1)
          yield* returned(to)
          const lost = [...open.values()].find((sent) => sent <= to && sent + echoTimeout >= from)
          if (lost !== undefined) {
            const what = `an undelayed message of the control on ${queue} did not come within ${echoTimeout} ms`
            return yield* Effect.fail(new CheckFailed(what))
          }
          return spans.longest(from, to)
        }),
      precision,
      pulse: Effect.andThen(
        Effect.sleep(2 * echoInterval),
        Effect.suspend(() => returned(now()))
      )
    }
  })
