/**
 * Reads the counts of queues by passive declares. Concurrent callers share a channel, which takes longer to open and close than a
 * request. https://www.rabbitmq.com/docs/queues#properties
 */
import { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Channel } from "../client.ts"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import * as NameRules from "../nameRules.ts"

/** The broker's own. */
export interface Dependencies {
  readonly declarer: Pick<Declarer, "keptChannel">
  /** Milliseconds that a response of the server may take. */
  readonly requestTimeout: number
}

/** Returns the counts of a queue. Fails with `QueueMissing` if there is none. */
type Result = Awaited<ReturnType<Channel["checkQueue"]>>

/** Reads one queue. Declares nothing, and does not ask about a name that no queue can have. */
export type Passive = (queue: string) => Effect.Effect<Result, BrokerError.BrokerError>

interface Question {
  readonly queue: string
  readonly answer: Deferred.Deferred<Result, BrokerError.BrokerError>
}

/** Channels that may be open at a time, if the kept channel is not free soon enough. */
const most = 16

const operation = "counts"

/** Reasons that apply to all waiting callers, and not to one queue or channel. */
const ofAll: ReadonlySet<BrokerError.Reason> = new Set(["Timeout", "ConnectionFailed"])

/** Opens a channel for the first request, and closes it after the last response. */
export const make = ({ declarer, requestTimeout }: Dependencies): Passive => {
  const waiting = new Set<Question>()
  let open = 0

  const next = (): Question | undefined => {
    const [question] = waiting
    if (question !== undefined) waiting.delete(question)
    return question
  }

  /** Sends requests until none is left. Fails if one is not answered or the channel closes, as for a missing queue. */
  const through = (channel: Channel, first: Question) =>
    Effect.gen(function* () {
      for (let question: Question | undefined = first; question !== undefined; question = next()) {
        const { answer, queue } = question
        const asked = request({ operation, queue }, requestTimeout, () => channel.checkQueue(queue))
        const exit = yield* Effect.exit(Effect.tapError(asked, (error) => refuse(question, error)))
        if (Exit.isFailure(exit)) yield* exit
        yield* Deferred.done(answer, exit)
      }
    })

  /** If the server does not respond, the other callers have waited as long as this one. */
  const refuse = (question: Question, error: BrokerError.BrokerError) =>
    Effect.suspend(() => {
      const all = ofAll.has(error.reason) ? [question, ...waiting] : [question]
      for (const each of all) waiting.delete(each)
      return Effect.forEach(all, ({ answer, queue }) => Deferred.fail(answer, about(queue, error)), { discard: true })
    })

  const work = Effect.gen(function* () {
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      const question = first
      // While this waits for a channel, another channel may serve all requests.
      const channel = Effect.tapError(declarer.keptChannel(operation, question.queue), (error) =>
        waiting.has(question) ? refuse(question, error) : Effect.void
      )
      const asked = Effect.flatMap(channel, (opened) => {
        const now = next()
        return now === undefined ? Effect.void : through(opened, now)
      })
      yield* Effect.catchCause(Effect.scoped(asked), (cause) =>
        waiting.delete(question) ? Deferred.failCause(question.answer, cause) : Effect.void
      )
    }
    // In the same step as the last check for requests; a request in between would never be sent.
    open--
  })

  return (queue) =>
    Effect.suspend(() => {
      if (!NameRules.isQueue(queue)) return Effect.fail(noQueue(queue))
      const question: Question = { queue, answer: Deferred.makeUnsafe() }
      waiting.add(question)
      const working = open < most ? Effect.forkDetach(work) : Effect.void
      open = Math.min(open + 1, most)
      return Effect.onInterrupt(Effect.andThen(working, Deferred.await(question.answer)), () =>
        Effect.sync(() => void waiting.delete(question))
      )
    })
}

/** The error that the server would return. The name may come from a message header. */
const noQueue = (queue: string): BrokerError.BrokerError => {
  const detail = "no queue can have this name"
  return new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason: "QueueMissing", detail })
}

/** The same error of another queue. */
const about = (queue: string, { detail, reason, remedy }: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason, detail, remedy })
