/** Decides whether a sweep is over when the broker shows no more letters. */
import { type Broker, BrokerError, Delay } from "@requeue/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { timeout } from "./publishing.ts"

/** The letters of a queue that a sweep did not receive. */
export interface Left {
  /** Letters that are still ready. */
  readonly ready: number
  /** Letters that another reader holds; `undefined` if the broker does not count them. */
  readonly held: number | undefined
}

/** A sweep that waits for letters. */
export interface Waiting {
  /** Milliseconds for which the broker has shown no letter. */
  readonly quiet: number
  /** The number of letters that the sweep holds. */
  readonly held: number
}

/** Milliseconds between two counts, and the time limit of a count. */
export const interval = 1000

/**
 * Milliseconds without a letter that end a sweep. The time is longer if the broker can count: letters may exist, and a slow
 * broker must not look like an empty queue.
 */
const limits = { counted: 10_000, uncounted: 3000 }

const unknown: Broker.Counts = { ready: undefined, inFlight: undefined, delayed: undefined }

/** Counts the queue; `undefined` if the broker does not answer now. Counts that the broker refuses are unknown. */
const counted = (broker: Broker.Service, queue: string): Effect.Effect<Broker.Counts | undefined> =>
  Effect.map(Effect.timeoutOption(broker.admin.counts(queue), Duration.millis(interval)), Option.getOrUndefined).pipe(
    Effect.catch(({ isRetryable }) => Effect.succeed(isRetryable ? undefined : unknown))
  )

/** Returns the error of a queue that is missing, although it existed when the work began. */
export const deleted = ({ capabilities }: Broker.Service, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: capabilities.broker,
    operation: "browse",
    queue,
    reason: "QueueMissing",
    detail: "the queue was deleted while its letters were browsed"
  })

/**
 * Returns the letters that an ended sweep did not receive; `undefined` while the sweep goes on. Fails if letters should
 * have arrived.
 */
export const end = (
  broker: Broker.Service,
  queue: string,
  { held, quiet }: Waiting
): Effect.Effect<Left | undefined, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { exactCounts, broker: name } = broker.capabilities
    const counts = yield* counted(broker, queue)
    const fail = (detail: string) =>
      new BrokerError.BrokerError({ broker: name, operation: "browse", queue, reason: "Timeout", detail })
    // A broker that is too slow to count is slow to show letters as well.
    if (counts === undefined && quiet < timeout) return undefined
    if (counts === undefined) return yield* fail(`letters could not be counted for ${Delay.format(quiet)}`)
    const { inFlight, isMissing, ready } = counts
    if (isMissing === true) return yield* deleted(broker, queue)
    const left = { ready: 0, held: inFlight === undefined ? undefined : Math.max(0, inFlight - held) }
    // A letter may be returning to the queue, and while a broker moves it to a consumer, no count has it.
    if (quiet < (ready === undefined ? limits.uncounted : limits.counted)) return undefined
    if (ready === undefined) return left
    // A count that is not exact does not prove that a letter is there.
    if (ready === 0 || !exactCounts) return { ...left, ready }
    return yield* fail(`${ready} letters are ready, and none was delivered for ${Delay.format(quiet)}`)
  })
