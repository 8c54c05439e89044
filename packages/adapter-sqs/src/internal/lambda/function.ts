/** A Lambda function: the services that its invocations share, and the run of one invocation. */
import type { Consumer } from "@requeue/core"
import { Broker, BrokerError, ConfigurationError } from "@requeue/core/port"
import * as Data from "effect/Data"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Names from "../names.ts"
import * as ReceiptCalls from "../settle/receiptCalls.ts"
import { connect, type Message } from "../client.ts"
import { connecting } from "../driver.ts"
import * as Queues from "../declare/declare.ts"
import * as Publisher from "../publish/publisher.ts"
import * as Remembered from "../consume/remembered.ts"
import * as Sources from "../consume/sources.ts"
import { refusal, type SqsEvent, toMessages } from "./event.ts"
import * as Invocation from "./invocation.ts"
import * as Options from "./options.ts"

/** The part of Lambda's context that the function needs. */
export interface LambdaContext {
  readonly getRemainingTimeInMillis: () => number
}

/** The response of a function: the messages to redeliver. */
export interface SqsBatchResponse {
  batchItemFailures: Array<{ itemIdentifier: string }>
}

/** The error of an invocation that left messages unfinished, if the response cannot name them. */
export class MessagesNotDone extends Data.TaggedError("MessagesNotDone")<{
  readonly queue: string
  /** SQS's ids of the messages that are redelivered. */
  readonly messageIds: ReadonlyArray<string>
}> {
  override get message() {
    return `${this.messageIds.length} messages of ${this.queue} are redelivered; completed messages have been deleted`
  }
}

/** A Lambda function as an Effect: from an event to the messages to redeliver. */
export type Lambda = (
  event: SqsEvent,
  context: LambdaContext
) => Effect.Effect<SqsBatchResponse, Consumer.StartError | MessagesNotDone>

/** Called with every message that a handler receives. */
export type Begin = (message: { readonly id: string }) => void

/** Number of remembered completed messages: they are redelivered if the mapping does not receive the response. */
const settledLimit = 10_000

/** The part of the reserve for the response. */
const responding = 0.2

/** Milliseconds before the end of the function in which no handler starts, however small the reserve is. */
const lastBegin = 1000

/** Minimum milliseconds for a handler before it is interrupted: with less, the attempt would be wasted. */
const leastRun = 500

const noContext = new ConfigurationError.ConfigurationError({
  broker: "sqs",
  field: "context",
  detail: "the context does not report the remaining time of the function",
  remedy: "Call the handler with both arguments that Lambda calls the function with: handler(event, context)"
})

const noStore = new ConfigurationError.ConfigurationError({
  broker: "sqs",
  field: "connection",
  detail: "the connection has no store",
  remedy: 'Connect with a store, such as connect(url, { store: "postgres://…" })'
})

/** Returns the broker of an invocation with the store of a connection. */
const withStore = ({ broker }: Invocation.Invocation, connection: Options.Options["connection"]) =>
  connection === undefined
    ? Effect.succeed(broker)
    : Effect.flatMap(
        Effect.promise(() => connection.run(Broker.Broker)),
        ({ beside }) => (beside === undefined ? Effect.fail(noStore) : Effect.succeed(beside(broker)))
      )

/** Verifies for as long as the function has time to report a failure. */
const inTime = <A>(verified: Effect.Effect<A, BrokerError.BrokerError>, queue: string, duration: Duration.Duration) =>
  Effect.timeoutOrElse(verified, { duration, orElse: () => Effect.fail(notVerified(queue)) })

const notVerified = (queue: string) =>
  new BrokerError.BrokerError({
    broker: "sqs",
    operation: "verify",
    queue,
    reason: "Timeout",
    detail: "SQS has not answered in the time of the function",
    remedy: "Can the function reach SQS? In a VPC it needs an endpoint for SQS, or a NAT gateway"
  })

/** Refuses events of another queue. `from` provides the account, from the queue's name or its URL. */
const refuse = (
  event: SqsEvent,
  from: string,
  { name: { name }, settings: { address } }: Effect.Success<ReturnType<typeof Options.decode>>
) => {
  const account = Result.getOrUndefined(Names.parse(from))?.account
  const refused = refusal(event, { name, region: address.region, account })
  return refused === undefined ? Effect.void : Effect.fail(refused)
}

/** Returns the response of an invocation, or fails if the response cannot name messages. */
const respond = (
  messages: ReadonlyArray<Message>,
  { isDone }: Invocation.Invocation,
  {
    calls,
    left,
    queue,
    reportBatchItemFailures
  }: {
    /** The remaining time. */
    readonly left: Duration.Duration
    readonly queue: string
    readonly calls: ReceiptCalls.ReceiptCalls
    readonly reportBatchItemFailures: boolean
  }
): Effect.Effect<SqsBatchResponse, MessagesNotDone> =>
  Effect.gen(function* () {
    const done = messages.filter(isDone)
    const idsBut = (gone: ReadonlySet<Message>) => [
      ...new Set(messages.flatMap((message) => (gone.has(message) ? [] : [message.MessageId ?? ""])))
    ]
    if (reportBatchItemFailures || done.length === messages.length) {
      return { batchItemFailures: idsBut(new Set(done)).map((itemIdentifier) => ({ itemIdentifier })) }
    }
    const deletes = calls.deleteMessages(done.map(({ ReceiptHandle = "" }) => ReceiptHandle))
    const results = Option.getOrElse(yield* Effect.timeoutOption(deletes, left), () => [])
    const deleted = done.filter((_, index) => index in results && results[index] === undefined)
    return yield* new MessagesNotDone({ queue, messageIds: idsBut(new Set(deleted)) })
  })

/** Makes a function. `start` starts the consumer of one invocation. */
export const make = (
  queue: string,
  options: Options.Options,
  start: (
    options: Consumer.Options,
    begin: Begin
  ) => Effect.Effect<Consumer.Consumer, Consumer.StartError, Broker.Broker | Scope.Scope>
): Effect.Effect<Lambda, ConfigurationError.ConfigurationError, Scope.Scope> =>
  Effect.gen(function* () {
    const decoded = yield* Options.decode(queue, options)
    const { name, planned, reportBatchItemFailures, reserve, settings } = decoded
    const unbegun = Math.max(reserve + leastRun, lastBegin)
    const runFork = Effect.runForkWith(yield* Effect.context())
    const fork = (effect: Effect.Effect<unknown>): void => void runFork(effect)
    const client = yield* connecting(connect)(settings)
    const queues = Queues.make(client, settings)
    const publisher = Publisher.make({ client, queues, fork })
    const remembered = Remembered.make(settledLimit)
    const sources = Sources.make(
      client,
      yield* Effect.map(Clock.Clock, (clock) => () => clock.currentTimeMillisUnsafe()),
      planned.retry.maxDeliveries
    )
    let found: Queues.Queue | undefined
    const calls = ReceiptCalls.make({ client, queue, url: () => found!.url, fork })

    /** Verifies the queues until this has succeeded once. */
    const ensure = (lease: number) =>
      Effect.suspend(() => {
        if (found !== undefined) return Effect.succeed(found)
        return Effect.map(queues.ensure(planned, lease), (queueFound) => (found = queueFound))
      })

    /** Runs the handler on all messages until they are done or no more may begin. Returns how to end the rest. */
    const run = (invocation: Invocation.Invocation, begin: Begin, left: (spare: number) => Duration.Duration) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const consumer = yield* start(decoded.consumer, begin).pipe(
          Effect.provideService(Broker.Broker, yield* withStore(invocation, options.connection)),
          Scope.provide(scope),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
        )
        yield* Effect.timeoutOption(invocation.answered, left(unbegun))
        // A handler may continue after its last message is settled. Unsettled messages are returned.
        return Effect.andThen(
          Effect.suspend(() => consumer.drain(left(reserve))),
          Scope.close(scope, Exit.void)
        )
      })

    /** Returns all messages of an invocation whose time is nearly over. */
    const giveBack = ({ broker }: Invocation.Invocation) =>
      Effect.scoped(broker.subscribe({ ...planned, onDelivery: () => {}, onReconnect: () => {} }))

    const work = (invocation: Invocation.Invocation, begin: Begin, left: (spare: number) => Duration.Duration) =>
      Effect.gen(function* () {
        const isLate = Duration.toMillis(left(unbegun)) === 0
        const end = isLate ? giveBack(invocation) : yield* run(invocation, begin, left)
        // Forked: a hanging call to SQS must not delay the response.
        yield* Effect.timeoutOption(Fiber.await(yield* Effect.forkDetach(end)), left(reserve * responding))
      })

    return (event, context) =>
      Effect.gen(function* () {
        if (typeof context?.getRemainingTimeInMillis !== "function") return yield* noContext
        const left = (spare: number) => Duration.millis(Math.max(0, context.getRemainingTimeInMillis() - spare))
        yield* refuse(event, queue, decoded)
        const { url } = yield* inTime(ensure(Duration.toMillis(left(0))), queue, left(reserve * responding))
        yield* refuse(event, url, decoded)
        const messages = toMessages(event)
        const begun = new Set<string>()
        const now = yield* Clock.currentTimeMillis
        yield* Effect.timeoutOption(sources.learn(messages), left(unbegun))
        const shared = { queue, fifo: name.fifo, settings, calls, publisher, remembered, sources }
        const invocation = Invocation.make(messages, now, { ...shared, begun })
        if (messages.length > 0) yield* work(invocation, ({ id }) => begun.add(id), left)
        const time = left(reserve * responding)
        return yield* respond(messages, invocation, { queue, calls, reportBatchItemFailures, left: time })
      })
  })
