/** Pauses the channels of a queue on every nsqd that has them. */
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Access } from "../http.ts"
import * as NsqdHttp from "../nsqdHttp.ts"
import * as Places from "./places.ts"

/**
 * Pauses or resumes a queue with its retries. Returns the error of each nsqd that was not changed. Fails with
 * `QueueMissing` if no nsqd has the channel.
 */
export const setPaused = (
  dependencies: Places.PlacesDependencies & Access,
  queue: string,
  isPaused: boolean
): Effect.Effect<ReadonlyArray<BrokerError.BrokerError>, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const operation = isPaused ? "pause" : "resume"
    const { answers, missing } = yield* Places.ask(yield* Places.of(dependencies, queue, operation), (place) =>
      NsqdHttp.setPaused(place.http, place.queue, isPaused, dependencies)
    )
    if (answers.some(({ answer }) => answer)) return missing
    return yield* new BrokerError.BrokerError({
      broker: "nsq",
      operation,
      queue,
      reason: "QueueMissing",
      detail: "no nsqd that answers has the channel of the queue",
      remedy: "Check the queue's name, or create its channel with requeue create"
    })
  })
