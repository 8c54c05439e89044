/** AWS between a queue and a function: receives, invokes, and deletes what the response does not name. */
import { SqsOperator } from "@requeue/adapter-sqs"
import { SqsLambda } from "@requeue/adapter-sqs/lambda"
import type { Handler } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Received } from "../../../src/servers/sqs/Message.ts"
import { on, type Options, type World } from "../world.ts"

/** Milliseconds that a function has, unless a test gives it another time. */
const functionTimeout = 20_000

const toRecord = ({ Attributes, Body, MessageAttributes = {}, MessageId, ReceiptHandle }: Received, arn: string) => ({
  messageId: MessageId,
  receiptHandle: ReceiptHandle,
  body: Body,
  attributes: Attributes as SqsLambda.SqsRecord["attributes"], // as Lambda documents it
  messageAttributes: Object.fromEntries(
    Object.entries(MessageAttributes).map(([name, attribute]) => [
      name,
      { dataType: attribute?.DataType ?? "", stringValue: attribute?.StringValue }
    ])
  ),
  eventSourceARN: arn
})

/** The messages that a response names. */
export const failed = ({ batchItemFailures }: SqsLambda.SqsBatchResponse): ReadonlyArray<string> =>
  batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)

export const json = (...values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.map((value) => JSON.stringify(value))

/** The bodies of the messages that a response names. */
export const bodiesOf = (
  { Records }: SqsLambda.SqsEvent,
  response: SqsLambda.SqsBatchResponse
): ReadonlyArray<unknown> =>
  failed(response).map((id) => JSON.parse(Records.find(({ messageId }) => messageId === id)!.body) as unknown)

const make = (world: World, queue: string) => {
  const { ask, connection, counts, elsewhere, messages, now, server } = world
  const letters = queue.endsWith(".fifo") ? `${queue.slice(0, -5)}-dlq.fifo` : `${queue}-dlq`

  const context = (remaining: number = functionTimeout): SqsLambda.LambdaContext => {
    const end = now() + remaining
    return { getRemainingTimeInMillis: () => end - now() }
  }

  const event = (count = 10): Effect.Effect<SqsLambda.SqsEvent> =>
    Effect.map(
      ask("ReceiveMessage", queue, {
        MaxNumberOfMessages: count,
        WaitTimeSeconds: 0,
        MessageSystemAttributeNames: ["All"],
        MessageAttributeNames: ["All"]
      }),
      (reply) => {
        const { Messages = [] }: { readonly Messages?: ReadonlyArray<Received> } = reply
        return { Records: Messages.map((message) => toRecord(message, server.queue(queue)!.arn)) }
      }
    )

  const apply = ({ Records }: SqsLambda.SqsEvent, response: SqsLambda.SqsBatchResponse): Effect.Effect<void> => {
    const again = failed(response)
    const done = Records.filter(({ messageId }) => !again.includes(messageId))
    const Entries = done.map(({ receiptHandle }, index) => ({ Id: String(index), ReceiptHandle: receiptHandle }))
    return done.length === 0 ? Effect.void : Effect.asVoid(ask("DeleteMessageBatch", queue, { Entries }))
  }

  return {
    ...world,
    queue,
    letters,
    context,
    event,
    apply,
    /** Sends bodies; on a FIFO queue their groups are the first characters. */
    put: (...bodies: ReadonlyArray<string>) =>
      Effect.forEach(bodies, (MessageBody) => {
        const group = queue.endsWith(".fifo")
          ? { MessageGroupId: MessageBody.slice(1, 2), MessageDeduplicationId: MessageBody }
          : {}
        return ask("SendMessageBatch", queue, { Entries: [{ Id: "0", MessageBody, ...group }] })
      }),
    /** A function whose handler gets one message at a time. */
    lambda: <A = unknown>(options: Omit<SqsLambda.Options, "sqs">, handler: Handler.MessageHandler<A>) =>
      elsewhere(SqsLambda.make<A>(queue, { sqs: connection, ...options }, handler)),
    batchLambda: <A = unknown>(options: Omit<SqsLambda.BatchOptions, "sqs">, handler: Handler.BatchHandler<A>) =>
      elsewhere(SqsLambda.makeBatch<A>(queue, { sqs: connection, ...options }, handler)),
    /** Receives, invokes, and applies the response. Returns the number of messages. */
    round: (lambda: SqsLambda.Lambda, remaining?: number) =>
      Effect.gen(function* () {
        const received = yield* event()
        if (received.Records.length > 0) yield* apply(received, yield* lambda(received, context(remaining)))
        return received.Records.length
      }),
    /** Receives until a message comes. */
    come: Effect.gen(function* () {
      for (;;) {
        const received = yield* event()
        if (received.Records.length > 0) return received
        yield* Effect.sleep(20)
      }
    }),
    left: () => counts(queue),
    deadLetters: (): ReadonlyArray<Metadata.Metadata> =>
      messages(letters).map(({ content }) => Metadata.decode(content.attributes["requeue"]?.StringValue ?? "")!)
  }
}

export type Function = ReturnType<typeof make>

/** Runs a program on a queue and its dead-letter queue, as an operator would have made them. */
export const onLambda = (
  program: (world: Function) => Effect.Effect<unknown, unknown, Scope.Scope>,
  { queue = "orders", ...options }: Options & { readonly queue?: string } = {}
): Promise<void> =>
  on({ visibilityTimeout: 30_000, ...options }, (world) =>
    Effect.gen(function* () {
      yield* world.elsewhere(SqsOperator.create({ queue, retry: { maxRetries: 20 } }, world.connection))
      yield* program(make(world, queue))
    })
  )
