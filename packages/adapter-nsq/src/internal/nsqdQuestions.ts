/** Questions to an nsqd that somebody asks at the same time: many are one, which it answers after all of them. */
import type { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { HttpInterface } from "./address.ts"
import type { Queue } from "./names.ts"
import * as NsqdStats from "./nsqdStats.ts"

interface Question {
  readonly queue: Queue
  readonly answer: Deferred.Deferred<NsqdStats.Depths, BrokerError.BrokerError>
}

/** Milliseconds in which questions are gathered, and how many of them are one for all topics of an nsqd. */
const gathering = { millis: 2, many: 8 }

/** Asks for the messages of channels. `timeout` is in milliseconds, for one request. */
export const make = (
  timeout: number
): ((base: HttpInterface, queue: Queue) => Effect.Effect<NsqdStats.Depths, BrokerError.BrokerError>) => {
  /** By the address of an nsqd. */
  const gathered = new Map<string, Array<Question>>()
  const alone = (base: HttpInterface, questions: ReadonlyArray<Question>) =>
    Effect.forEach(
      questions,
      ({ answer, queue }) =>
        Effect.flatMap(Effect.exit(NsqdStats.depths(base, queue, timeout)), (exit) => Deferred.done(answer, exit)),
      { concurrency: "unbounded", discard: true }
    )
  const together = (base: HttpInterface, questions: ReadonlyArray<Question>) =>
    Effect.matchCauseEffect(NsqdStats.statistics(base, { operation: "counts" }, timeout, {}), {
      onSuccess: (all) => {
        const topics = new Map(all.map((topic) => [topic.name, topic]))
        return Effect.forEach(
          questions,
          ({ answer, queue }) => Deferred.succeed(answer, NsqdStats.depthsIn(topics.get(queue.topic), queue)),
          { discard: true }
        )
      },
      // It may have more topics than an answer may tell, or tell what nobody expects.
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
