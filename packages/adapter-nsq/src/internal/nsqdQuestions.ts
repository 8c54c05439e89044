/** Combines simultaneous requests for counts: many requests to one nsqd become one. */
import type { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { HttpInterface } from "./address.ts"
import type { Access } from "./http.ts"
import type { Queue } from "./names.ts"
import * as NsqdStats from "./nsqdStats.ts"

interface Question {
  readonly queue: Queue
  readonly answer: Deferred.Deferred<NsqdStats.Depths, BrokerError.BrokerError>
}

/** `millis`: how long requests are gathered. `many`: how many become one request for all topics of an nsqd. */
const gathering = { millis: 2, many: 8 }

/** Returns a function that requests the counts of a channel. */
export const make = (
  access: Access
): ((base: HttpInterface, queue: Queue) => Effect.Effect<NsqdStats.Depths, BrokerError.BrokerError>) => {
  /** Keyed by the URL of an nsqd. */
  const gathered = new Map<string, Array<Question>>()
  const alone = (base: HttpInterface, questions: ReadonlyArray<Question>) =>
    Effect.forEach(
      questions,
      ({ answer, queue }) =>
        Effect.flatMap(Effect.exit(NsqdStats.depths(base, queue, access)), (exit) => Deferred.done(answer, exit)),
      { concurrency: "unbounded", discard: true }
    )
  const together = (base: HttpInterface, questions: ReadonlyArray<Question>) =>
    Effect.matchCauseEffect(NsqdStats.statistics(base, { operation: "counts" }, access, {}), {
      onSuccess: (all) => {
        const topics = new Map(all.map((topic) => [topic.name, topic]))
        return Effect.forEach(
          questions,
          ({ answer, queue }) => Deferred.succeed(answer, NsqdStats.depthsIn(topics.get(queue.topic), queue)),
          { discard: true }
        )
      },
      // The response may be too large, or unreadable because of another topic.
      onFailure: () => alone(base, questions)
    })
  const round = (base: HttpInterface) =>
    Effect.gen(function* () {
      yield* Effect.sleep(gathering.millis)
      const questions = gathered.get(base.url) ?? []
      gathered.delete(base.url)
      yield* questions.length < gathering.many ? alone(base, questions) : together(base, questions)
    })
  return (base, queue) =>
    Effect.suspend(() => {
      const question: Question = { queue, answer: Deferred.makeUnsafe() }
      const others = gathered.get(base.url)
      if (others !== undefined) {
        others.push(question)
        return Deferred.await(question.answer)
      }
      gathered.set(base.url, [question])
      return Effect.andThen(Effect.forkDetach(round(base)), Deferred.await(question.answer))
    })
}
