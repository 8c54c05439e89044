/**
 * Controls measure how late the machine itself is: they are timers and messages that are late only when the machine is.
 *
 * Two kinds run all the time. A timer of this process shows how late the event loop and the system's scheduler are. An
 * echo, which is an undelayed message through the same broker and connection, shows how late the broker's process and the
 * way there and back are. {@link Lateness} compares what a test saw to the controls of the same time.
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

/** Controls that run until their scope closes. */
export interface Service {
  /**
   * Returns by how many milliseconds the latest control of a window was late; it returns 0 if no control was late. The
   * window's ends are in milliseconds since 1970. Waits until the controls that began in the window have ended. Fails if a
   * control is lost: it did not arrive within a minute, though no connection broke.
   */
  readonly lateness: (from: number, to: number) => Effect.Effect<number, CheckFailed>
  /** Milliseconds by which the clocks of the broker and of a test may differ. */
  readonly precision: number
  /** Waits for the end of controls that begin now. By then a test has seen everything that was in flight before. */
  readonly pulse: Effect.Effect<void>
  /** Whether {@link check} ignores lateness. A case still fails if a message is early, lost or counted wrongly. */
  readonly ignoresLateness?: boolean
}

/** Something that a test saw arrive, and when. {@link check} compares its lateness to the controls of the same time. */
export interface Arrival extends Omit<Lateness.Reading, "control"> {
  /** When the test requested it, in milliseconds since 1970. */
  readonly from: number
  /** When it arrived, in milliseconds since 1970. */
  readonly at: number
  /** How often it went through the broker. It may be late by as many times the control's lateness. Default 1. */
  readonly hops?: number
}

/**
 * Compares each arrival to the controls of the same time, and fails as {@link Lateness.check} does. `share` is the part of
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
 * Milliseconds: both clocks have whole milliseconds, and a timer counts from the start of the event loop's turn in which it was
 * set.
 */
const precision = 2

/**
 * Controls for real time that never fail a test for lateness. Arrivals that are early by more than the clocks differ still
 * fail.
 */
export const ignored: Service = {
  ...none,
  precision,
  ignoresLateness: true,
  // After a stall, the first timer fires before what else was due.
  pulse: Effect.sleep(20)
}

/** The controls that a case uses. When a suite runs in real time, it provides running ones. Default: {@link none}. */
export const Control = Context.Reference<Service>("@requeue/conformance/Control", { defaultValue: () => none })

/** Milliseconds from one timer to the next. */
const timerInterval = 10

/** Milliseconds from one echo to the next. */
const echoInterval = 100

/** Milliseconds for which late controls and lost echoes are kept. */
const retention = 15 * 60_000

/** Milliseconds after which an echo is lost. */
const echoTimeout = 60_000

/** The maximum number of echoes in flight. */
const maxEchoes = 20

const first = "e0"

/** The duration of a control. Without lateness it is 0. */
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
    /** Returns the milliseconds of the longest span that touches a window. */
    longest: (from: number, to: number): number =>
      spans
        .filter((span) => span.to >= from && span.from <= to)
        .reduce((longest, span) => Math.max(longest, span.to - span.from), 0)
  }
}

/**
 * Sends control messages through a broker and measures how late they arrive, until the scope closes. `queue` must be a
 * queue that no case uses.
 */
export const make = (broker: Broker.Service, queue: string): Effect.Effect<Service, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const fork = Effect.runForkWith(yield* Effect.context())
    /** When the echoes in flight were sent, by their ids. */
    const open = new Map<string, number>()
    const spans = makeSpans(now)
    let echoes = 0

    const subscription = yield* broker.subscribe({
      queue,
      // A queue that delays natively cannot be planned without a backoff. Nothing is retried here.
      retry: RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("1 second") }),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: (delivery) => {
        const sent = open.get(delivery.metadata.id)
        // The first echo does not count: it opens the connections that the others use.
        if (sent !== undefined && delivery.metadata.id !== first) spans.end(sent)
        open.delete(delivery.metadata.id)
        fork(subscription.settle([{ delivery, settlement: Settlement.Ack }]))
      },
      // An echo that was lost with its connection shows nothing about the machine.
      onReconnect: () => open.clear()
    })
    subscription.credit(maxEchoes)

    const echo = Effect.suspend(() => {
      // A lost echo is reported for as long as a case may ask for its window.
      for (const [id, sent] of open) if (now() - sent > retention) open.delete(id)
      if (open.size >= maxEchoes) return Effect.void
      const id = `e${echoes++}`
      open.set(id, now())
      const publish = Effect.suspend(() => broker.publish([Workload.outgoing(queue, id, { now: now() })]))
      return Effect.catchCause(publish, () => Effect.sync(() => open.delete(id)))
    })
    // Counts from one wake-up to the next, which leaves no gap.
    let [woken, wakings] = [now(), 0]
    const timer = Effect.map(Effect.sleep(timerInterval), () => {
      spans.end(woken + timerInterval)
      woken = now()
      wakings++
    })

    /** Waits for this many wake-ups of the timer. It counts them, because the time of day may be set back. */
    const wakes = (count: number): Effect.Effect<void> =>
      Effect.suspend(() => (wakings >= count ? Effect.void : Effect.andThen(Effect.sleep(timerInterval), wakes(count))))

    /** Waits until the echoes that were sent by then have returned or are lost. */
    const returned = (until: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        const [first] = [...open.values()].filter((sent) => sent <= until && now() - sent < echoTimeout)
        return first === undefined ? Effect.void : Effect.andThen(Effect.sleep(timerInterval), returned(until))
      })

    yield* Effect.forkScoped(Effect.forever(timer))
    // An echo does not wait for the previous one: while the broker stands still, several are late by the same time.
    const send = Effect.sync(() => fork(echo))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(send, Effect.sleep(echoInterval))))

    return {
      lateness: (from, to) =>
        Effect.gen(function* () {
          // The timer records a delay only at its next wake-up.
          yield* wakes(wakings + 1)
          yield* returned(to)
          const lost = [...open.values()].find((sent) => sent <= to && sent + echoTimeout >= from)
          if (lost !== undefined) {
            const what = `an undelayed message of the control on ${queue} did not arrive within ${echoTimeout} ms`
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
