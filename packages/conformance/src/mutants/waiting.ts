/** Consumers that wait wrongly. */
import { Broker, type Consumer, type Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Mutant } from "../Mutant.ts"

/** Changes what every consumer offers to its operator. */
const offers = (name: string, kills: string, change: Partial<Consumer.Consumer>): Mutant => {
  const changed = (consumer: Consumer.Consumer) => ({ ...consumer, ...change })
  return {
    name,
    kills,
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => Effect.map(subject.start(queue, given, handler), changed),
      startBatch: (queue, given, handler) => Effect.map(subject.startBatch(queue, given, handler), changed)
    })
  }
}

export const mutants: ReadonlyArray<Mutant> = [
  offers("cannot be paused", "a paused consumer takes nothing and starts nothing, and lets handlers end that run", {
    pause: () => {}
  }),
  offers("cannot be resumed", "a paused consumer that is resumed goes on with what it has, and then with the rest", {
    resume: () => {}
  }),
  {
    name: "does not wait for handlers at the end",
    kills: "a drain lets handlers end, and acks what they did",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) =>
        Effect.map(subject.start(queue, given, handler), (consumer) => ({
          ...consumer,
          drain: () => consumer.drain(0)
        }))
    })
  },
  {
    name: "restarts the batch's timer with every message",
    kills: "the timeout counts from the first message: it is no debounce",
    subject: (subject) => ({
      ...subject,
      startBatch: (queue, given, handler) => {
        const { batch } = given
        if (batch === undefined) return subject.startBatch(queue, given, handler)
        return Effect.gen(function* () {
          const broker = yield* Broker.Broker
          const fork = Effect.runForkWith(yield* Effect.context())
          const subscribe: typeof broker.subscribe = (wanted) => {
            let waiting: Array<Delivery.Delivery> = []
            let timer: Fiber.Fiber<void> | undefined
            const flush = Effect.sync(() => {
              const ready = waiting
              waiting = []
              for (const delivery of ready) wanted.onDelivery(delivery)
            })
            return broker.subscribe({
              ...wanted,
              onDelivery: (delivery) => {
                waiting.push(delivery)
                timer?.interruptUnsafe()
                timer = fork(Effect.delay(flush, batch.maxBatchTimeout))
              }
            })
          }
          const atOnce = { ...given, batch: { ...batch, maxBatchTimeout: 0 } }
          const debounced = { ...broker, subscribe }
          return yield* Effect.provideService(subject.startBatch(queue, atOnce, handler), Broker.Broker, debounced)
        })
      }
    })
  }
]
