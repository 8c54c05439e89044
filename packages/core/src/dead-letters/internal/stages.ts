/** The stages of a redrive: publish some, wait until it is known what became of them, and go on only if that is well. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Delay from "../../message/Delay.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Summary } from "./books.ts"
import type { Ledger, State } from "./ledger.ts"
import { timeout } from "./publishing.ts"
import type { Options } from "./redrive.ts"
import type { StoppedBy } from "./report.ts"
import * as Sweep from "./sweep.ts"
import type { Waiting, Watch } from "./watch.ts"

/** Redrives up to so many letters, and answers the books of that. */
export type Pass = (limit: number | undefined) => Effect.Effect<Summary, BrokerError>

export interface Dependencies {
  readonly options: Options
  readonly ledger: Ledger
  readonly watch: Watch
  readonly pass: Pass
  /** The queues that have been redriven to. */
  readonly targets: ReadonlySet<string>
  /** Whether the broker's counts are exact at any moment. */
  readonly isExact: boolean
  readonly onState: (state: Pick<State, "counted" | "unseen">) => void
}

const standard = { stages: [1, 10, 100], stopAt: 0.1, wait: 60_000 }

/** Letters that are published between two checks of what has come back; with a rate, as many as in so many seconds. */
const slice = { letters: 1000, seconds: 5 }

/** Milliseconds between two counts. */
const interval = 1000

/** Milliseconds for which counts that are not exact must be 0, as in a sweep. */
const quiet = 10_000

const never = Number.POSITIVE_INFINITY

/** Milliseconds that an aborted redrive takes to see where its letters are. */
const grace = 5000

/** Milliseconds until the next count, the last of which is at the end. */
const next = (now: number, end: number): number => (now < end ? Math.min(interval, end - now) : interval)

/** Runs the stages, and answers why they ended early. */
export const run = (dependencies: Dependencies): Effect.Effect<StoppedBy | undefined, BrokerError> =>
  Effect.gen(function* () {
    const { isExact, ledger, options, pass, targets, watch } = dependencies
    const {
      limit = Number.POSITIVE_INFINITY,
      rate,
      signal,
      stages = standard.stages,
      stopAt = standard.stopAt
    } = options
    const wait = options.wait === undefined ? standard.wait : Delay.toMillis(options.wait)
    const clock = yield* Clock.Clock
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    const isAborted = () => signal?.aborted === true
    const isBeyond = () => ledger.isBeyond(stopAt, watch.unseen())

    // What moves from its queue to the dead letters in between is counted twice, and not missed.
    const check = (isLast: boolean): Effect.Effect<Waiting, BrokerError> =>
      Effect.gen(function* () {
        const waiting = yield* watch.waiting(targets)
        yield* watch.look(isLast)
        dependencies.onState({ counted: waiting.isWhole ? waiting.counted : undefined, unseen: watch.unseen() })
        return waiting
      })

    let failing: number | undefined
    /** Answers `undefined` while the broker is away, for a minute at most. */
    const steadily = <A>(effect: Effect.Effect<A, BrokerError>): Effect.Effect<A | undefined, BrokerError> =>
      Effect.matchEffect(effect, {
        onSuccess: (answer) => {
          failing = undefined
          return Effect.succeed(answer)
        },
        onFailure: (error) => {
          failing ??= now()
          return error.isRetryable && now() - failing < timeout ? Effect.succeed(undefined) : Effect.fail(error)
        }
      })

    /** Waits until it is known what became of the letters, and answers why none may follow. */
    const settle: Effect.Effect<StoppedBy | undefined, BrokerError> = Effect.gen(function* () {
      const end = now() + wait
      let [last, hasLeft, emptySince] = [0, false, never]
      while (true) {
        const isOver = now() >= end || now() - emptySince >= (isExact ? 0 : quiet)
        const waiting = yield* steadily(check(isOver))
        const outstanding = ledger.outstanding()
        if (outstanding === 0) return isBeyond() ? "stop-at" : undefined
        emptySince = waiting?.isWhole === true && waiting.counted === 0 ? Math.min(emptySince, now()) : never
        if (waiting !== undefined) {
          const { counted } = waiting
          hasLeft ||= counted < Math.max(last, outstanding)
          last = counted
          if (isOver) return isBeyond() ? "stop-at" : counted > 0 && !hasLeft ? "wait" : undefined
        }
        if (!isExact || emptySince > now()) yield* Effect.sleep(Duration.millis(next(now(), end)))
      }
    })

    const sleep = (millis: number): Effect.Effect<void> =>
      millis > 0 ? Effect.raceFirst(Effect.sleep(Duration.millis(millis)), Sweep.aborted(signal)) : Effect.void

    let [left, free] = [limit, Number.NEGATIVE_INFINITY]
    /** Publishes a stage, and answers why it went no further; `through` when no letters are left. */
    const publish = (size: number): Effect.Effect<"abort" | "stop-at" | "through" | undefined, BrokerError> =>
      Effect.gen(function* () {
        const most = rate === undefined ? slice.letters : Math.ceil(rate * slice.seconds)
        let room = Math.min(size, left)
        let end = never
        while (room > 0) {
          // Each pass begins at once; the rate is that of all of them.
          yield* sleep(free - now())
          if (isAborted()) return "abort"
          const begun = now()
          const asked = Math.min(room, most)
          const { held = 0, removed, selected, unremoved } = yield* pass(asked)
          watch.swept(removed)
          free = begun + ((removed + unremoved) * 1000) / (rate ?? Number.POSITIVE_INFINITY)
          if (isAborted()) return "abort"
          room -= selected
          left -= selected
          yield* steadily(check(false))
          if (isBeyond()) return "stop-at"
          if (selected === asked) continue
          // What another reader has, such as the look before, comes back, or not.
          end = Math.min(end, now() + wait)
          if (held === 0 || now() >= end) return "through"
          yield* sleep(interval)
        }
        return left > 0 ? undefined : "through"
      })

    const all: Effect.Effect<StoppedBy | undefined, BrokerError> = Effect.gen(function* () {
      for (const size of [...stages, undefined]) {
        ledger.begin(size)
        const published = yield* publish(size ?? Number.POSITIVE_INFINITY)
        if (published === "abort") return published
        ledger.close()
        const stopped = yield* Effect.raceFirst(settle, Effect.as(Sweep.aborted(signal), "abort" as const))
        if (stopped !== undefined || published !== undefined) return stopped
      }
      return undefined
    })
    const stoppedBy = yield* all
    if (stoppedBy === "abort") yield* Effect.ignore(Effect.timeoutOption(check(true), Duration.millis(grace)))
    return stoppedBy
  })
