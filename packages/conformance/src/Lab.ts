/**
 * A case's laboratory: a queue of its own, a recorded broker, consumers whose runs are written down, and waiting that
 * ends with a clear message.
 */
import {
  Broker,
  type Capabilities,
  type Consumer,
  type Delivery,
  type Handler,
  type Outgoing,
  type Producer,
  type QueueDefinition
} from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CheckFailed } from "./Check.ts"
import { Control } from "./Control.ts"
import * as HarnessModule from "./Harness.ts"
import * as Observer from "./internal/observer.ts"
import * as Recording from "./Recording.ts"
import { Subject } from "./Subject.ts"
import * as Workload from "./Workload.ts"

export type Run = Observer.Run

type Started<E = Consumer.StartError> = Effect.Effect<Consumer.Consumer, E, Scope.Scope>

export interface Lab extends Observer.View {
  readonly queue: string
  /** Where the queue's dead letters go unless a policy says otherwise. */
  readonly dlq: string
  /** The recorded broker. */
  readonly broker: Broker.Service
  readonly capabilities: Capabilities.Capabilities
  readonly harness: HarnessModule.Service
  readonly faults: Recording.Faults
  /** The shortest delay that can be told from none, in milliseconds; cases use small multiples. */
  readonly unit: number
  /** How late a due message may be, in milliseconds. */
  readonly slack: number
  /** The longest time that a client may take to be back after its connection broke, in milliseconds. */
  readonly recovery: number
  readonly now: () => number
  /** Sends messages whose ids and bodies are these texts, in order. */
  readonly send: (...ids: ReadonlyArray<string>) => Effect.Effect<void, Producer.SendError | Consumer.StartError>
  readonly sendDelayed: (id: string, delay: number) => Effect.Effect<void, Producer.SendError | Consumer.StartError>
  readonly producer: <A>(
    queue?: QueueDefinition.Input<A>,
    options?: Producer.Options
  ) => Effect.Effect<Producer.Producer<A>, Consumer.StartError>
  /** Publishes below the producer, with metadata of the case's own making. */
  readonly publish: (id: string, change?: Partial<Outgoing.Outgoing["metadata"]>) => Effect.Effect<void, unknown>
  readonly start: <A = any>(
    options?: Consumer.Options,
    handler?: Handler.MessageHandler<A>,
    queue?: QueueDefinition.Input<A>
  ) => Started
  readonly startBatch: <A = any>(
    options: Consumer.Options,
    handler?: Handler.BatchHandler<A>,
    queue?: QueueDefinition.Input<A>
  ) => Started
  /** Waits until the broker holds so many messages in a dead-letter queue; then answers them. */
  readonly untilDeadLetters: (count: number, queue?: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  /** Waits until the broker's numbers are these; numbers that it cannot tell are not compared. */
  readonly untilPending: (counts: Partial<Broker.Counts>, queue?: string) => Effect.Effect<void, unknown>
  /** Waits until a consumer was told of a new connection. */
  readonly untilReconnected: Effect.Effect<void, CheckFailed>
  /** Waits until nothing is left in the queue, so far as the broker can tell. */
  readonly untilEmpty: Effect.Effect<void, unknown>
}

const recovery = 120_000

/** A laboratory on the broker, harness and subject at hand. */
export const make = (base: string): Effect.Effect<Lab, unknown, Broker.Broker | HarnessModule.Harness> =>
  Effect.gen(function* () {
    const harness = yield* HarnessModule.Harness
    const subject = yield* Subject
    const control = yield* Control
    const clock = yield* Clock.Clock
    const { broker, faults, log } = yield* Recording.make(yield* Broker.Broker)
    const { capabilities } = broker
    const queue = yield* harness.uniqueQueue(base.replaceAll(" ", "-"))
    const slack = harness.lateness + capabilities.delayResolution
    const now = () => clock.currentTimeMillisUnsafe()
    const observer = Observer.make({ control, harness, now, log, slack })
    const provided = Effect.provideService(Broker.Broker, broker)

    const lab: Lab = {
      ...observer.view,
      queue,
      dlq: `${queue}.dlq`,
      broker,
      capabilities,
      harness,
      faults,
      unit: Math.max(200, capabilities.delayResolution, 2 * harness.lateness),
      slack,
      recovery,
      now,
      producer: (to, options) => provided(subject.makeProducer(to ?? queue, options)),
      send: (...ids) =>
        Effect.flatMap(lab.producer(), ({ sendBatch }) => sendBatch(ids.map((id) => ({ id, body: id })))),
      sendDelayed: (id, delay) => Effect.flatMap(lab.producer(), ({ send }) => send(id, { id, delay })),
      publish: (id, change) =>
        Effect.suspend(() => {
          const message = Workload.outgoing(queue, id, { now: now() })
          return broker.publish([{ ...message, metadata: { ...message.metadata, ...change } }])
        }),
      start: (options = {}, handler = () => {}, from) =>
        provided(
          subject.start(from ?? queue, observer.watch(options), (message, context) => {
            observer.ran([message])
            return handler(message, context)
          })
        ),
      startBatch: (options, handler = () => {}, from) =>
        provided(
          subject.startBatch(from ?? queue, observer.watch(options), (batch, context) => {
            observer.ran(batch.messages)
            return handler(batch, context)
          })
        ),
      untilReconnected: Effect.suspend(() =>
        lab.until("the new connection", () => lab.entriesOf("Reconnected").length > 0, recovery)
      ),
      untilEmpty: Effect.suspend(() => lab.untilPending({ ready: 0, inFlight: 0, delayed: 0 })),
      untilPending: (counts, from = queue) => observer.untilPending(counts, from),
      untilDeadLetters: (count, from = lab.dlq) => observer.untilDeadLetters(count, from)
    }
    return lab
  })
