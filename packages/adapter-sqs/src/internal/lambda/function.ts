/** A function on Lambda, from its loading to its end: what its invocations share, and the course of each. */
import type { Consumer } from "@requeue/core"
import { Broker, type ConfigurationError, BoundedMap } from "@requeue/core/adapter-kit"
import * as Data from "effect/Data"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Calls from "../settle/receiptCalls.ts"
import { connect, type Message } from "../client.ts"
import * as Queues from "../declare/declare.ts"
import * as Sender from "../publish/publisher.ts"
import * as Tally from "../consume/remembered.ts"
import { type SqsEvent, toMessages } from "./event.ts"
import * as Invocation from "./invocation.ts"
import * as Options from "./options.ts"

/** What Lambda hands to a function beside the event; of it, this is needed. */
export interface LambdaContext {
  readonly getRemainingTimeInMillis: () => number
}

/** The messages that come again. */
export interface SqsBatchResponse {
  batchItemFailures: Array<{ itemIdentifier: string }>
}

/** The end of an invocation that left messages undone, where the answer cannot name them. */
export class MessagesNotDone extends Data.TaggedError("MessagesNotDone")<{
  readonly queue: string
  readonly messageIds: ReadonlyArray<string>
}> {
  override get message() {
    return `${this.messageIds.length} messages of ${this.queue} come again; those that are done have been deleted`
  }
}

export type Lambda = (
  event: SqsEvent,
  context: LambdaContext
) => Effect.Effect<SqsBatchResponse, Consumer.StartError | MessagesNotDone>

export type Begin = (message: { readonly id: string }) => void

/** Messages whose end is remembered, in case that the mapping does not hear of it. */
const rememberLimit = 10_000

/** What is left of the reserve for the answer itself. */
const answering = 0.2

export const make = (
  queue: string,
  options: Options.Options,
  /** `begin` is told of every message that a handler gets. */
  start: (
    options: Consumer.Options,
    begin: Begin
  ) => Effect.Effect<Consumer.Consumer, Consumer.StartError, Broker.Broker | Scope.Scope>
): Effect.Effect<Lambda, ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const decoded = yield* Options.decode(queue, options)
    const { name, planned, reportBatchItemFailures, reserve, settings } = decoded
    const run = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void run(effect)
    const client = yield* connect(settings)
    const queues = Queues.make(client, settings)
    const sender = Sender.make({ client, queues, fork })
    const finished = BoundedMap.make<true>(rememberLimit)
    const tally = Tally.make()
    let found: Queues.Queue | undefined
    const calls = Calls.make({ client, queue, url: () => found!.url, fork })

    /** Once it was well, what it found is not asked again by later invocations. */
    const ensure = (lease: number) =>
      Effect.suspend(() => {
        if (found !== undefined) return Effect.void
        return Effect.map(queues.ensure(planned, lease), (one) => {
          found = one
        })
      })

    /** Runs the handler on all messages, at the latest until `left` says so. */
    const work = (invocation: Invocation.Invocation, begin: Begin, left: (spare: number) => Duration.Duration) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const consumer = yield* start(decoded.consumer, begin).pipe(
          Effect.provideService(Broker.Broker, invocation.broker),
          Scope.provide(scope),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
        )
        yield* Effect.timeoutOption(invocation.answered, left(reserve))
        // A handler may go on after its last message is settled. What has no answer yet goes back.
        const end = Effect.andThen(consumer.drain(left(reserve)), Scope.close(scope, Exit.void))
        // In the background: a call to SQS that hangs must not keep the answer.
        yield* Effect.timeoutOption(Fiber.await(yield* Effect.forkDetach(end)), left(reserve * answering))
      })

    const answer = (messages: ReadonlyArray<Message>, { isDone }: Invocation.Invocation) =>
      Effect.gen(function* () {
        const ids = messages.filter((message) => !isDone(message)).map(({ MessageId = "" }) => MessageId)
        const messageIds = [...new Set(ids)]
        if (reportBatchItemFailures || messageIds.length === 0) {
          return { batchItemFailures: messageIds.map((itemIdentifier) => ({ itemIdentifier })) }
        }
        yield* calls.remove(messages.filter(isDone).map(({ ReceiptHandle = "" }) => ReceiptHandle))
        return yield* new MessagesNotDone({ queue, messageIds })
      })

    return (event, context) =>
      Effect.gen(function* () {
        const left = (spare: number) => Duration.millis(Math.max(0, context.getRemainingTimeInMillis() - spare))
        const messages = yield* Effect.fromResult(toMessages(event, name.name))
        yield* ensure(Duration.toMillis(left(0)))
        const begun = new Set<string>()
        const { fifo } = name
        const now = yield* Clock.currentTimeMillis
        const environment = { queue, fifo, settings, calls, sender, finished, tally, begun }
        const invocation = Invocation.make(messages, now, environment)
        if (messages.length > 0) yield* work(invocation, ({ id }) => begun.add(id), left)
        return yield* answer(messages, invocation)
      })
  })
