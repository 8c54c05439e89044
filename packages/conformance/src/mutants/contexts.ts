/** Consumers, producers and operations that run a program's functions in a foreign async context. */
import { Classifier, type Codec, type Consumer, QueueDefinition, RetryPolicy } from "@requeue/core"
import { AsyncContext, DeadLetterRouting, Failure } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { inside } from "../internal/asyncContext.ts"
import type { Mutant } from "../Mutant.ts"
import type { Shape } from "../Subject.ts"

const elsewhere = inside("elsewhere", AsyncContext.capture)

const hooks = "hooks, codecs, classifiers, redactors and listeners run in the async context of their consumer"

const retryOf = ({ retry }: Consumer.Options): RetryPolicy.RetryPolicy => RetryPolicy.from(retry ?? {})

/** Changes the options of every consumer. */
const options = (name: string, change: (options: Consumer.Options) => Consumer.Options): Mutant => ({
  name,
  kills: hooks,
  subject: (subject) => ({ ...subject, start: (queue, given, handler) => subject.start(queue, change(given), handler) })
})

const strayed = <A, I>(codec: Codec.Codec<A, I>): Codec.Codec<A, I> => ({
  ...codec,
  encode: AsyncContext.bind(elsewhere, codec.encode),
  decode: AsyncContext.bind(elsewhere, codec.decode),
  encodeMessage: AsyncContext.bind(elsewhere, codec.encodeMessage)
})

/** Makes handlers run in the context of the last send. */
const afterSends = (subject: Shape): Shape => {
  let last = elsewhere
  const captured = Effect.sync(() => {
    last = AsyncContext.capture()
  })
  return {
    ...subject,
    makeProducer: (queue, given) =>
      Effect.map(subject.makeProducer(queue, given), (producer) => ({
        ...producer,
        send: (body, sendOptions) => Effect.andThen(captured, producer.send(body, sendOptions))
      })),
    start: (queue, given, handler) =>
      subject.start(queue, given, (message, context) => last(() => handler(message, context)))
  }
}

export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "runs handlers in the async context of the last send",
    kills: "a handler runs in the async context of its consumer, and not in that of a send or of another message",
    subject: afterSends
  },
  options("runs hooks in another async context", (given) => ({
    ...given,
    onEvent: AsyncContext.bind(elsewhere, given.onEvent)
  })),
  options("runs classifiers in another async context", (given) => {
    const retry = retryOf(given)
    const classify = Classifier.make({ ...retry.classify, with: AsyncContext.bind(elsewhere, retry.classify.with) })
    return { ...given, retry: { ...retry, classify } }
  }),
  options("runs redactors in another async context", (given) => {
    const { deadLetter, ...retry } = retryOf(given)
    const { redact, routes } = deadLetter
    return {
      ...given,
      retry: { ...retry, deadLetter: DeadLetterRouting.make({ routes, redact: AsyncContext.bind(elsewhere, redact) }) }
    }
  }),
  {
    name: "reads a thrown error in another async context",
    kills: "the properties of a thrown error are read in the async context of its consumer",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) =>
        subject.start(queue, given, (message, context) => {
          try {
            return handler(message, context)
          } catch (error) {
            elsewhere(Failure.summarize, error)
            throw error
          }
        })
    })
  },
  {
    name: "decodes in another async context",
    kills: hooks,
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => {
        const definition = QueueDefinition.from(queue)
        return subject.start({ ...definition, codec: strayed(definition.codec) }, given, handler)
      }
    })
  },
  {
    name: "encodes in another async context",
    kills: "a codec encodes in the async context of its producer, and not in that of a send",
    subject: (subject) => ({
      ...subject,
      makeProducer: (queue, given) => {
        const definition = QueueDefinition.from(queue)
        return subject.makeProducer({ ...definition, codec: strayed(definition.codec) }, given)
      }
    })
  },
  {
    name: "filters dead letters in another async context",
    kills: "filters, audits and progress of dead letters run in the async context of their call",
    subject: (subject) => ({
      ...subject,
      makeDeadLetters: (queue) =>
        Effect.map(subject.makeDeadLetters(queue), (letters) => ({
          ...letters,
          list: (given) => letters.list({ ...given, filter: AsyncContext.bind(elsewhere, given?.filter) })
        }))
    })
  }
]
