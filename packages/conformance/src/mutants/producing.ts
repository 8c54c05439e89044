/** Producers that do the wrong thing with a good broker. */
import { Producer } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

/** Changes every producer. */
const producer = (
  name: string,
  kills: string,
  change: <A>(producer: Producer.Producer<A>) => Producer.Producer<A>
): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    makeProducer: (queue, options) => Effect.map(subject.makeProducer(queue, options), change)
  })
})

/** Changes the options of every producer. */
const options = (name: string, kills: string, change: Producer.Options): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    makeProducer: (queue, given) => subject.makeProducer(queue, { ...given, ...change })
  })
})

export const mutants: ReadonlyArray<Mutant> = [
  producer(
    "takes an explicit delay of 0 for none",
    "an explicit delay of 0 beats the batch's and the queue's",
    (good) => ({
      ...good,
      send: (body, { delay, ...rest } = {}) => good.send(body, delay === 0 ? rest : { ...rest, delay })
    })
  ),
  producer(
    "sends without the delay where it is invalid",
    "an invalid delay is an error before anything is sent",
    (good) => ({
      ...good,
      send: (body, given = {}) =>
        Effect.catchTag(good.send(body, given), "InvalidDelay", () => good.send(body, { ...given, delay: 0 }))
    })
  ),
  producer(
    "sends what is good of a bad batch",
    "what cannot be encoded, or has a reserved header, is an error before anything is sent",
    (good) => ({
      ...good,
      sendBatch: (entries) => Effect.forEach(entries, ({ body, ...rest }) => good.send(body, rest))
    })
  ),
  producer("keeps refusals to itself", "a broker's refusal reaches the sender", (good) => ({
    ...good,
    send: (body, given) => Effect.catchTag(good.send(body, given), "BrokerError", () => Effect.succeed("sent"))
  })),
  options("waits for a confirmation for hours", "a send without a confirmation ends with a timeout that says so", {
    publishTimeout: "10 hours"
  }),
  options("lets any number of sends wait", "sends that wait for their confirmation are bounded", {
    maxPending: 100_000
  })
]
