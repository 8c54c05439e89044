/** Mutants between the consumer and the broker. */
import { Broker, type Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Mutant } from "../Mutant.ts"

/** Makes a mutant that changes the broker as the consumer sees it: above the faults that a case injects. */
export const sees = (name: string, kills: string, change: (broker: Broker.Service) => Broker.Service): Mutant => {
  const seen = <A, R>(start: Effect.Effect<Consumer.Consumer, A, R>) =>
    Effect.flatMap(Broker.Broker, (broker) => Effect.provideService(start, Broker.Broker, change(broker)))
  return {
    name,
    kills,
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => seen(subject.start(queue, given, handler)),
      startBatch: (queue, given, handler) => seen(subject.startBatch(queue, given, handler))
    })
  }
}
