/** What tests share: a broker to run on, consumers that write down their runs, and another client of the server. */
import type { Message, SQS } from "@aws-sdk/client-sqs"
import * as Wait from "@requeue/conformance/Wait"
import * as Workload from "@requeue/conformance/Workload"
import { Broker, Consumer, type Handler } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import * as Names from "../../src/internal/names.ts"
import type { Moved } from "./clock.ts"
import { SqsBroker, type SqsOptions } from "../../src/index.ts"

export { ids, publishAll } from "@requeue/conformance/Workload"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const outgoing = (queue: string, id: string, details: Partial<Workload.Details> = {}) =>
  Workload.outgoing(queue, id, { now: Date.now(), ...details })

/** Runs a program on a broker, without logs; `by` runs all of it by another clock. Polls are short, so that its end is. */
export const on = <A>(options: SqsOptions.Options, program: Program<A>, by?: Moved["run"]): Promise<A> =>
  Effect.runPromise(running(options, program, by))

/** The same as an Effect. */
export const running = <A>(
  options: SqsOptions.Options,
  program: Program<A>,
  by: Moved["run"] = (all) => all
): Effect.Effect<A, unknown> =>
  Effect.flatMap(SqsBroker.make({ waitTime: 1000, ...options }), (broker) =>
    Effect.provideService(program(broker), Broker.Broker, broker)
  ).pipe(Effect.scoped, by, Effect.provideService(References.MinimumLogLevel, "None"))

type Program<A> = (broker: Broker.Service) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>

/** Waits for a condition in real time, also where a test moves the clock of all else. */
export const until: typeof Wait.until = (...asked) =>
  Effect.provideService(Wait.until(...asked), Clock.Clock, Clock.Clock.defaultValue())

export interface Run {
  readonly id: string
  readonly attempts: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** A consumer that remembers its runs. */
export const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options = {},
  handler: Handler.MessageHandler<string> = () => Effect.void
) =>
  Consumer.start<string>(queue, options, (message, context) => {
    runs.push({ id: message.id, attempts: message.attempts, at: Date.now() })
    return handler(message, context)
  })

/** What a handler returns that fails. */
export const no = Effect.fail(new Error("no"))

/** The id that our metadata gives a message, or else SQS. */
export const idOf = ({ MessageAttributes = {}, MessageId = "" }: Message): string =>
  Metadata.decode(MessageAttributes[Metadata.header]?.StringValue ?? "")?.id ?? MessageId

/** The URL of a queue, by its name in Requeue. */
export const urlOf = async (sqs: SQS, queue: string): Promise<string | undefined> => {
  const { name } = Result.getOrThrow(Names.parse(queue))
  return (await sqs.getQueueUrl({ QueueName: name })).QueueUrl
}

/** The messages of a queue, seen by another client, and taken out. */
export const drain = async (sqs: SQS, queue: string): Promise<ReadonlyArray<Message>> => {
  const QueueUrl = await urlOf(sqs, queue)
  const found: Array<Message> = []
  for (;;) {
    const { Messages = [] } = await sqs.receiveMessage({
      QueueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: 0,
      MessageAttributeNames: ["All"],
      MessageSystemAttributeNames: ["All"]
    })
    if (Messages.length === 0) return found
    found.push(...Messages)
    for (const { ReceiptHandle } of Messages) await sqs.deleteMessage({ QueueUrl, ReceiptHandle })
  }
}

/** What is still in a queue by the server's own count, which is exact on a server of ours. */
const counts = async (sqs: SQS, queue: string) => {
  const QueueUrl = await urlOf(sqs, queue)
  const { Attributes = {} } = await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
  return {
    ready: Number(Attributes.ApproximateNumberOfMessages),
    inFlight: Number(Attributes.ApproximateNumberOfMessagesNotVisible),
    delayed: Number(Attributes.ApproximateNumberOfMessagesDelayed)
  }
}

/** Whether the numbers of a queue are these: ready, in flight, delayed. */
export const has = async (sqs: SQS, queue: string, ...numbers: readonly [number, number, number]): Promise<boolean> => {
  const { delayed, inFlight, ready } = await counts(sqs, queue)
  return [ready, inFlight, delayed].every((number, index) => number === numbers[index])
}

/** All of it. */
export const left = async (sqs: SQS, queue: string): Promise<number> => {
  const { delayed, inFlight, ready } = await counts(sqs, queue)
  return ready + inFlight + delayed
}

/** Waits until nothing is left in a queue: duplicates, too, have their turn. */
export const untilEmpty = (sqs: SQS, queue: string): ReturnType<typeof until> =>
  until(`nothing left in ${queue}`, async () => (await left(sqs, queue)) === 0)
