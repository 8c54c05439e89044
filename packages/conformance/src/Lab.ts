/**
 * The laboratory of a case: its own queue, a recorded broker, consumers whose runs are recorded, and waiting that fails
 * with a clear message.
 */
import { Broker, type Consumer, type Delivery, type Handler, type Producer, type QueueDefinition } from "@requeue/core"
import { type Capabilities, type Outgoing } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CheckFailed } from "./Check.ts"
import { Control } from "./Control.ts"
import { type Failure, Harness, type Operation, type Service as HarnessService } from "./Harness.ts"
import * as Observer from "./internal/observer.ts"
import * as Recording from "./Recording.ts"
import { Subject } from "./Subject.ts"
import * as Workload from "./Workload.ts"

export type { DelayOptions } from "./internal/lateness.ts"
export type { Run } from "./internal/observer.ts"

type Started = Effect.Effect<Consumer.Consumer, Consumer.StartError, Scope.Scope>

/** The laboratory of one case. */
export interface Lab extends Observer.View {
  /** The queue of this case; no other case uses it. */
  readonly queue: string
  /** The dead-letter queue of this case, unless a policy names another one. */
  readonly dlq: string
  /** The broker, whose calls are recorded. */
  readonly broker: Broker.Service
  readonly capabilities: Capabilities.Capabilities
  readonly harness: HarnessService
  /** Failures to inject above the adapter, so the call does not reach the broker. */
  readonly faults: Recording.Faults
  /**
   * Makes the next call of the adapter to its broker fail, if the harness can do it. The returned function reports whether
   * the call has failed.
   */
  readonly failNext: (operation: Operation, failure: Failure) => Effect.Effect<() => boolean, unknown, Scope.Scope>
  /**
   * A laboratory of another process on the same queue. If the broker lives in one process only, it is a laboratory of this
   * process.
   */
  readonly another: Effect.Effect<Lab, unknown, Broker.Broker | Harness | Scope.Scope>
  /** The shortest delay that a case can distinguish from none, in milliseconds; cases use small multiples of it. */
  readonly unit: number
  /** Milliseconds by which a due message may be late. */
  readonly slack: number
  /** Maximum milliseconds until a client is connected again after its connection broke. */
  readonly recovery: number
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Sends messages whose ids and bodies are these texts, in order. */
  readonly send: (...ids: ReadonlyArray<string>) => Effect.Effect<void, Producer.SendError | Consumer.StartError>
  /** Sends a message whose id and body are this text, with a delay in milliseconds. */
  readonly sendDelayed: (id: string, delay: number) => Effect.Effect<void, Producer.SendError | Consumer.StartError>
  /** Makes the producer under test. Default: for this case's queue. */
  readonly producer: <A>(
    queue?: QueueDefinition.Input<A>,
    options?: Producer.Options
  ) => Effect.Effect<Producer.Producer<A>, Consumer.StartError>
  /** Publishes a message without the producer under test. A case may change the metadata. */
  readonly publish: (id: string, change?: Partial<Outgoing.Outgoing["metadata"]>) => Effect.Effect<void, unknown>
  /** Starts the consumer under test. Default: on this case's queue, with a handler that does nothing. */
  readonly start: <A = unknown>(
    options?: Consumer.Options,
    handler?: Handler.MessageHandler<A>,
    queue?: QueueDefinition.Input<A>
  ) => Started
  /** Starts the consumer under test with a handler of batches. Defaults as for `start`. */
  readonly startBatch: <A = unknown>(
    options: Consumer.Options,
    handler?: Handler.BatchHandler<A>,
    queue?: QueueDefinition.Input<A>
  ) => Started
  /** Runs an effect on the broker, whose calls are recorded. */
  readonly onBroker: <A, E>(effect: Effect.Effect<A, E, Broker.Broker>) => Effect.Effect<A, E>
  /** The dead letters under test, in this case's dead-letter queue. */
  readonly letters: Effect.Effect<DeadLetters.DeadLetters>
  /** The dead letters under test, in any queue. */
  readonly lettersIn: (queue: string) => Effect.Effect<DeadLetters.DeadLetters>
  /** The dead letters under test, in a queue that the policy of this case's queue names. */
  readonly lettersFoundIn: (queue: string) => Effect.Effect<DeadLetters.DeadLetters>
  /**
   * Waits until a dead-letter queue has at least `count` messages, and returns them. Default: this case's dead-letter
   * queue.
   */
  readonly untilDeadLetters: (count: number, queue?: string) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, unknown>
  /**
   * Waits until the broker has reported these numbers for a queue for the harness's `settleTime`. Numbers that the broker cannot
   * count are not compared.
   */
  readonly untilPending: (counts: Partial<Broker.Counts>, queue?: string) => Effect.Effect<void, unknown>
  /** Waits until a consumer has reported a new connection. */
  readonly untilReconnected: Effect.Effect<void, CheckFailed>
  /** Waits until the queue is empty, by the numbers that the broker can count. */
  readonly untilEmpty: Effect.Effect<void, unknown>
}

const recovery = 120_000

/** Makes a laboratory on the provided broker, harness and subject. `base` is part of its queue's name. */
export const make = (base: string): Effect.Effect<Lab, unknown, Broker.Broker | Harness> =>
  Effect.gen(function* () {
    const { uniqueQueue } = yield* Harness
    return yield* at(yield* uniqueQueue(base.replaceAll(" ", "-")))
  })

/** Makes a laboratory on an existing queue. */
export const at = (queue: string): Effect.Effect<Lab, never, Broker.Broker | Harness> =>
  Effect.gen(function* () {
    const harness = yield* Harness
    const subject = yield* Subject
    const control = yield* Control
    const clock = yield* Clock.Clock
    const { broker, faults, log } = yield* Recording.make(yield* Broker.Broker)
    const { capabilities } = broker
    const slack = harness.lateness + capabilities.delayResolution
    const now = () => clock.currentTimeMillisUnsafe()
    const observer = Observer.make({ control, harness, now, log, slack })
    const provided = Effect.provideService(Broker.Broker, broker)
    const elsewhere: Effect.Effect<Broker.Service, unknown, Broker.Broker | Scope.Scope> =
      harness.another ?? Broker.Broker

    const lab: Lab = {
      ...observer.view,
      queue,
      dlq: `${queue}.dlq`,
      broker,
      capabilities,
      harness,
      faults,
      failNext: (operation, failure) =>
        harness.failNext?.(operation, failure, queue) ??
        Effect.die(new Error(`failNext(${operation}, ${failure}): missing`)),
      another: Effect.flatMap(elsewhere, (other) => Effect.provideService(at(queue), Broker.Broker, other)),
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
      onBroker: provided,
      letters: provided(subject.makeDeadLetters(`${queue}.dlq`)),
      lettersIn: (name) => provided(subject.makeDeadLetters(name)),
      lettersFoundIn: (name) => provided(subject.findDeadLetters(name, [queue])),
      untilReconnected: Effect.suspend(() =>
        lab.until("the new connection", () => lab.entriesOf("Reconnected").length > 0, recovery)
      ),
      untilEmpty: Effect.suspend(() => lab.untilPending({ ready: 0, inFlight: 0, delayed: 0 })),
      untilPending: (counts, from = queue) => observer.untilPending(counts, from),
      untilDeadLetters: (count, from = lab.dlq) => observer.untilDeadLetters(count, from)
    }
    return lab
  })
