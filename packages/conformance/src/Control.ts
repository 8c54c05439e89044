/**
 * Controls: things that have no reason to be late, and whose lateness is therefore the machine's.
 *
 * Two kinds are kept going all the time. A timer of this process shows what the event loop and the scheduler of the system
 * cost. An echo, which is an undelayed message through the same broker and the same connection, shows what the broker's
 * process and the way to it and back cost. {@link Lateness} says what follows from them.
 */
import { type Broker, RetryPolicy, Settlement } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { CheckFailed } from "./Check.ts"
import * as Lateness from "./Lateness.ts"
import * as Workload from "./Workload.ts"

export interface Service {
  /**
   * By how many milliseconds the latest control was late in this window, in milliseconds since the epoch; 0 when none was.
   * Waits until the controls that had begun in it have ended. Fails when one was lost: it did not come within a minute,
   * though no connection broke.
   */
  readonly lateness: (from: number, to: number) => Effect.Effect<number, CheckFailed>
  /** Waits until controls that begin from now on have ended: what was under way before would have been seen by then. */
  readonly pulse: Effect.Effect<void>
}

/** What a test saw come, and when; its controls are asked for by {@link check}. */
export interface Arrival extends Omit<Lateness.Reading, "control"> {
  /** When it was asked for, in milliseconds since the epoch. */
  readonly from: number
  /** When it came. */
  readonly at: number
  /** How often it went through the broker, each time as late as a control may be. Default 1. */
  readonly hops?: number
}

/** Judges what came against the controls of its own time. `share` is what may be late of it, as {@link Lateness.check} has it. */
export const check = (
  { lateness }: Service,
  arrivals: ReadonlyArray<Arrival>,
  share?: number
): Effect.Effect<void, CheckFailed | Lateness.NotMeasurable> =>
  Effect.flatMap(
    Effect.forEach(
      arrivals,
      ({ at, bound, from, hops = 1, late, what }) =>
        Effect.map(lateness(from, at), (control): Lateness.Reading => ({ what, late, bound, control: hops * control })),
      { concurrency: "unbounded" }
    ),
    (readings) => Lateness.check(readings, share)
  )

/** For virtual time, in which nothing is late. */
export const none: Service = { lateness: () => Effect.succeed(0), pulse: Effect.void }

/** The controls at hand. The suite provides them; where nobody does, there are none. */
export const Control = Context.Reference<Service>("@requeue/conformance/Control", { defaultValue: () => none })

/** Milliseconds from one control to the next, of each kind. */
const [tick, beat] = [10, 100]

/** Milliseconds for which what was seen is kept. */
const memory = 15 * 60_000

/** Milliseconds after which an echo is lost. */
const patience = 60_000

/** Echoes under way; while so many are, no other is sent. */
const most = 20

const first = "e0"

/** What took from one moment to another, and should have taken no time. */
interface Span {
  readonly from: number
  readonly to: number
}

/** Keeps the controls of a broker going, on a queue that nobody else uses, until the scope ends. */
export const make = (broker: Broker.Service, queue: string): Effect.Effect<Service, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()
    const fork = Effect.runForkWith(yield* Effect.context())
    /** When echoes that have not come back were sent, by their ids. */
    const open = new Map<string, number>()
    let spans: Array<Span> = []
    let [echoes, swept] = [0, now()]

    const ended = (from: number): void => {
      const to = now()
      if (to - from > 1) spans.push({ from, to })
      if (to - swept < memory) return
      swept = to
      spans = spans.filter((span) => span.to > to - memory)
    }

    const subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make({ maxRetries: "unlimited" }),
      deadLetterQueues: [`${queue}.dlq`],
      maxCredit: most,
      onDelivery: (delivery) => {
        const sent = open.get(delivery.metadata.id)
        // The first one makes the way that the others take.
        if (sent !== undefined && delivery.metadata.id !== first) ended(sent)
        open.delete(delivery.metadata.id)
        fork(subscription.settle([{ delivery, settlement: Settlement.Ack }]))
      },
      // What a broken connection took with it says nothing of the machine.
      onReconnect: () => open.clear()
    })
    subscription.credit(most)

    const echo = Effect.suspend(() => {
      // One that is lost is told for as long as it may be asked for.
      for (const [id, sent] of open) if (now() - sent > memory) open.delete(id)
      if (open.size >= most) return Effect.void
      const id = `e${echoes++}`
      open.set(id, now())
      const publish = Effect.suspend(() => broker.publish([Workload.outgoing(queue, id, { now: now() })]))
      return Effect.catchCause(publish, () => Effect.sync(() => open.delete(id)))
    })
    // From one waking to the next, so that there is no time in between that nobody sees.
    let woken = now()
    const timer = Effect.map(Effect.sleep(tick), () => {
      ended(woken + tick)
      woken = now()
    })

    /** Waits until those that were sent until then are back, or lost. */
    const returned = (until: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        const [first] = [...open.values()].filter((sent) => sent <= until && now() - sent < patience)
        return first === undefined ? Effect.void : Effect.andThen(Effect.sleep(tick), returned(until))
      })

    yield* Effect.forkScoped(Effect.forever(timer))
    // Each at its time, and not when the one before is back: where the broker stands still, many are late by as much.
    const send = Effect.sync(() => fork(echo))
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(send, Effect.sleep(beat))))

    return {
      lateness: (from, to) =>
        Effect.gen(function* () {
          yield* Effect.sleep(2 * tick)
          yield* returned(to)
          const lost = [...open.values()].find((sent) => sent <= to && sent + patience >= from)
          if (lost !== undefined) {
            const what = `an undelayed message of the control on ${queue} did not come within ${patience} ms`
            return yield* Effect.fail(new CheckFailed(what))
          }
          return spans
            .filter((span) => span.to >= from && span.from <= to)
            .reduce((latest, span) => Math.max(latest, span.to - span.from), 0)
        }),
      pulse: Effect.andThen(
        Effect.sleep(2 * beat),
        Effect.suspend(() => returned(now()))
      )
    }
  })
