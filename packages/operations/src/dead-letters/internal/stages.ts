/** The stages of a redrive: publishes some letters, waits for their outcome, and goes on only if they succeed. */
import { Delay, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Summary } from "./sweepStats.ts"
import type { Failed, StoppedBy } from "./report.ts"
import * as Settling from "./awaitOutcome.ts"
import * as Sweep from "./sweep.ts"

/** Redrives up to a number of letters, and returns the counts; `held` has only letters that were here when it began. */
export type Pass = (limit: number | undefined) => Effect.Effect<Summary, Failed>

/** The options of a redrive that its stages have. */
interface Options extends Sweep.Options {
  readonly stages?: ReadonlyArray<number> | undefined
  readonly stopAt?: number | undefined
  readonly wait?: Delay.DurationInput | undefined
}

export interface Dependencies extends Omit<Settling.Dependencies, "now" | "stopAt" | "wait"> {
  readonly options: Options
  readonly pass: Pass
}

/** The defaults of a redrive in stages. */
export interface Standard {
  /** The sizes of the first stages. */
  readonly stages: ReadonlyArray<number>
  /** The share of a stage that may come back. */
  readonly stopAt: number
  /** Milliseconds to wait after each stage. */
  readonly wait: number
}

/** The default stages of a redrive. */
export const standard: Standard = { stages: [1, 10, 100], stopAt: 0.1, wait: 60_000 }

/**
 * Returns the wait after a stage, in milliseconds, in which the retries of queues with these policies end. It is 1 minute
 * longer than the delays of the retries; the runs of handlers are not included.
 */
export const waitFor = (policies: ReadonlyArray<RetryPolicy.RetryPolicy>): Delay.Delay => {
  const retries = policies.map((policy) => RetryPolicy.describe(policy).worstCase).filter(Number.isFinite)
  return Math.min(Delay.max, Math.max(0, ...retries) + standard.wait)
}

/**
 * How many letters are published between two checks of what has come back; with `rate`, the letters of some seconds.
 */
const slice = { letters: 1000, seconds: 5 }

/** Milliseconds that an aborted redrive takes to count its letters. */
const grace = 5000

/** Runs the stages, and returns why they ended early. */
export const run = (dependencies: Dependencies): Effect.Effect<StoppedBy | undefined, Failed> =>
  Effect.gen(function* () {
    const { ledger, options, pass, watch } = dependencies
    const { rate = Number.POSITIVE_INFINITY, signal, stages = standard.stages, stopAt = standard.stopAt } = options
    const wait = options.wait === undefined ? standard.wait : Delay.toMillis(options.wait)
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const { check, isBeyond, settle } = Settling.make({ ...dependencies, now, stopAt, wait })
    const isAborted = () => signal?.aborted === true
    const sleep = (millis: number): Effect.Effect<void> =>
      millis > 0 ? Effect.raceFirst(Effect.sleep(Duration.millis(millis)), Sweep.aborted(signal)) : Effect.void

    let [left, free] = [options.limit ?? Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    const most = Math.min(slice.letters, Math.ceil(rate * slice.seconds))
    /** Publishes a stage, and returns why it stopped; `through` if no letters are left. */
    const publish = (size: number): Effect.Effect<StoppedBy | "through" | undefined, Failed> =>
      Effect.gen(function* () {
        let room = Math.min(size, left)
        let end = Number.POSITIVE_INFINITY
        while (room > 0) {
          // Each pass begins at once; the rate is that of all of them.
          yield* sleep(free - now())
          if (isAborted()) return "abort"
          const begun = now()
          const asked = Math.min(room, most)
          const { held = 0, removed, selected, unremoved } = yield* pass(asked)
          const published = removed + unremoved
          watch.swept(removed)
          free = begun + (published * 1000) / rate
          if (isAborted()) return "abort"
          // A pass may return selected letters to the queue.
          room -= published
          left -= published
          yield* check(false)
          if (isBeyond()) return "stop-at"
          if (selected === asked) continue
          // Letters of another reader, such as a browser, may return to the queue.
          end = Math.min(end, now() + wait)
          if (held === 0) return "through"
          if (now() >= end) return "held"
          yield* sleep(Settling.interval)
        }
        return left > 0 ? undefined : "through"
      })

    const all: Effect.Effect<StoppedBy | undefined, Failed> = Effect.gen(function* () {
      for (const size of [...stages, undefined]) {
        ledger.begin(size)
        const before = ledger.published()
        const published = yield* publish(size ?? Number.POSITIVE_INFINITY)
        if (published === "abort") return published
        ledger.close()
        // A stage without letters needs no wait.
        const end = published === "through" ? undefined : published
        if (published !== undefined && ledger.published() === before) return end
        const stopped = yield* Effect.raceFirst(settle, Effect.as(Sweep.aborted(signal), "abort" as const))
        if (stopped !== undefined || published !== undefined) return stopped ?? end
      }
      return undefined
    })
    const stoppedBy = yield* all
    if (stoppedBy === "abort") yield* Effect.ignore(Effect.timeoutOption(check(true), Duration.millis(grace)))
    return stoppedBy
  })
