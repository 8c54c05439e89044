/** When a sweep ends though nothing told it so: no letter comes, or the broker does not answer. */
import { type Broker, BrokerError, Delay } from "@requeue/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { timeout } from "./publishing.ts"

/** The sweep, as far as it may wait for something. */
interface Waiting {
  /** Whether copies are being published, which ends by itself. */
  readonly isPublishing: () => boolean
  /** The letters that it has: those that it holds until the end, and those that the broker is to take. */
  readonly size: () => { readonly working: number; readonly held: number }
  /** Letters that should still come; 0 for none. */
  readonly wanted: () => number
  /** Whether the engine waits until the broker takes settlements. */
  readonly isPaused: () => boolean
  /** Why the broker does not give the letters; `undefined` while it does. */
  readonly trouble: () => string | undefined
}

/** The letters of a queue that a sweep did not get. */
export interface Left {
  /** Letters that wait all the same. */
  readonly ready: number
  /** Letters that another reader has; `undefined` where the broker does not count them. */
  readonly held: number | undefined
}

export interface Silence {
  /** Must be called whenever something has happened. */
  readonly broken: () => void
  /**
   * Succeeds when nothing more will happen, with the letters that the sweep did not get, and fails when something should have
   * happened.
   */
  readonly end: (
    broker: Broker.Service,
    queue: string,
    waiting: Waiting
  ) => Effect.Effect<Left, BrokerError.BrokerError>
}

/** Milliseconds between two looks, and for a count. */
const interval = 1000

/**
 * Milliseconds without a letter that end a sweep. It is longer where the broker can count: there may be letters, and a slow
 * broker must not look like an empty queue.
 */
const limits = { counted: 10_000, uncounted: 3000 }

const unknown: Broker.Counts = { ready: undefined, inFlight: undefined, delayed: undefined }

/** `undefined` where the broker does not answer now. What it refuses to count, it does not count. */
const counted = (broker: Broker.Service, queue: string): Effect.Effect<Broker.Counts | undefined> =>
  Effect.map(Effect.timeoutOption(broker.admin.counts(queue), Duration.millis(interval)), Option.getOrUndefined).pipe(
    Effect.catch(({ isRetryable }) => Effect.succeed(isRetryable ? undefined : unknown))
  )

/** Time is that in which this process looks: while it stands still, it sees no letter, and that is no silence. */
export const make = (): Silence => {
  let [quietFor, isBroken, wasDown] = [0, true, false]

  /** The letters that still wait when the sweep is over after `quiet` milliseconds of silence; `undefined` while it is not. */
  const isOver = (broker: Broker.Service, queue: string, quiet: number, isDown: boolean, waiting: Waiting) =>
    Effect.gen(function* () {
      const fail = (reason: "ConnectionFailed" | "Timeout", detail: string) =>
        new BrokerError.BrokerError({ broker: broker.capabilities.broker, operation: "consume", queue, reason, detail })
      const { isPaused, size, trouble, wanted } = waiting
      const { held, working } = size()
      const because = trouble()
      if (isDown || because !== undefined || (isPaused() && working > 0)) {
        if (quiet < timeout) return undefined
        if (isDown) return yield* fail("ConnectionFailed", `there has been no connection for ${Delay.format(quiet)}`)
        return because === undefined
          ? yield* fail("Timeout", `no settlement has been taken for ${Delay.format(quiet)}`)
          : yield* fail("Timeout", `no letter has come for ${Delay.format(quiet)}: ${because}`)
      }
      const counts = yield* counted(broker, queue)
      // A broker that is too slow to count is slow to bring letters as well.
      if (counts === undefined && quiet < timeout) return undefined
      if (counts === undefined) return yield* fail("Timeout", `letters could not be counted for ${Delay.format(quiet)}`)
      const { inFlight, ready } = counts
      const left = { ready: 0, held: inFlight === undefined ? undefined : Math.max(0, inFlight - held - working) }
      const { exactCounts } = broker.capabilities
      // What is in flight beyond the held ones may be on its way. So may a letter that was counted: while a broker moves it to
      // a consumer, it may be in no count.
      if (ready === 0 && exactCounts && working === 0 && (inFlight ?? 0) <= held && wanted() === 0) return left
      if (quiet < (ready === undefined ? limits.uncounted : limits.counted)) return undefined
      if (ready === undefined || wanted() === 0) return left
      // A count that is not exact is no proof that a letter waits, unless one that was lost is missed.
      if (ready === 0 || (!exactCounts && working === 0)) return { ...left, ready }
      return yield* fail("Timeout", `${ready} letters wait, and none has come for ${Delay.format(quiet)}`)
    })

  return {
    broken: () => void (isBroken = true),
    end: Effect.fnUntraced(function* (broker, queue, waiting) {
      while (true) {
        yield* Effect.sleep(Duration.millis(interval))
        const isDown = broker.connection().state === "down"
        // Letters begin to come when the connection is there again.
        quietFor = isBroken || isDown !== wasDown || waiting.isPublishing() ? 0 : quietFor + interval
        ;[isBroken, wasDown] = [false, isDown]
        const left = quietFor === 0 ? undefined : yield* isOver(broker, queue, quietFor, isDown, waiting)
        if (left !== undefined) return left
      }
    })
  }
}
