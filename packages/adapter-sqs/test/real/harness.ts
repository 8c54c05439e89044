/** A server that speaks SQS, with a harness that looks behind the adapter, by the driver alone. */
import type { Message, MessageAttributeValue, SQS } from "@aws-sdk/client-sqs"
import type { StrictSqs } from "@requeue/brokers"
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as Names from "../../src/internal/names.ts"
import { toDelivery } from "../../src/internal/consume/toDelivery.ts"
import * as Wire from "../../src/internal/wire.ts"
import { SqsBroker } from "../../src/index.ts"
import { connect } from "./connect.ts"

export interface Target {
  readonly name: string
  /** Straight to the server. */
  readonly url: string
  /** What the adapter connects to. */
  readonly proxied: string
  readonly cutConnections?: (() => void) | undefined
  /** Where calls can be made to fail. */
  readonly strict?: StrictSqs | undefined
  /** As the harness has them, in milliseconds. */
  readonly lateness: number
  readonly settleTime: number
  /** Until a queue that was made can be used, in milliseconds. */
  readonly createTime: number
  /** Milliseconds of a lease. Default: those of the {@link options}. */
  readonly visibilityTimeout?: number
  /** Milliseconds that a request may take. Default: those of the {@link options}. */
  readonly requestTimeout?: number
}

/** Seconds for which messages that the harness reads are hidden. */
const readFor = 30

const text = (value: string): MessageAttributeValue => ({ DataType: "String", StringValue: value })

/** Every queue whose name starts so, those that the adapter made among them. */
export const removeAll = async (sqs: SQS, prefix: string): Promise<void> => {
  const { QueueUrls = [] } = await sqs.listQueues({ QueueNamePrefix: prefix, MaxResults: 1000 })
  for (const QueueUrl of QueueUrls) await sqs.deleteQueue({ QueueUrl })
}

/** Short polls, and leases that a case can outlive, and that a machine which is slow and busy keeps. */
export const options = {
  waitTime: 1000,
  visibilityTimeout: 10_000,
  // A machine on which everything is slow still connects in time.
  connectTimeout: 60_000,
  requestTimeout: 10_000
} as const

/** A call that extends a lease can also give a message back, so that only acks are settlements here. */
const actions: Readonly<Record<Harness.Operation, ReadonlyArray<string>>> = {
  publish: ["SendMessage", "SendMessageBatch"],
  settle: ["DeleteMessage", "DeleteMessageBatch"],
  extend: ["ChangeMessageVisibility", "ChangeMessageVisibilityBatch"],
  receive: ["ReceiveMessage"]
}

const failNext =
  (strict: StrictSqs): Harness.FailNext =>
  (operation, failure, queue) => {
    // It would come after the end of the lease.
    if (failure === "lateAnswer") return undefined
    return Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const names = [queue, `${queue}.dlq`].map((each) => Result.getOrThrow(Names.parse(each)).name)
          const where = { action: actions[operation], queue: names }
          switch (failure) {
            case "refused":
              // The SDK does not repeat this one by itself.
              return strict.fail(where, "KmsThrottled")
            case "lostRequest":
              return strict.ignore(where)
            case "lostAnswer":
              return strict.lose(where)
          }
        }),
        ({ end }) => Effect.sync(end)
      ),
      ({ left }) =>
        () =>
          left() === 0
    )
  }

export const layer = (target: Target) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const prefix = `requeue-${randomUUID().slice(0, 8)}`
      let queues = 0
      const sqs = yield* Effect.acquireRelease(
        Effect.sync(() => connect(target.url)),
        (client) =>
          Effect.promise(async () => {
            await removeAll(client, prefix)
            client.destroy()
          })
      )
      const { proxied: url, ...own } = target
      const { requestTimeout = options.requestTimeout, visibilityTimeout = options.visibilityTimeout } = own
      const open = SqsBroker.make({ ...options, requestTimeout, visibilityTimeout, url })
      const broker = yield* open

      const urlOf = async (queue: string): Promise<string | undefined> => {
        const { name } = Result.getOrThrow(Names.parse(queue))
        const found = await sqs.getQueueUrl({ QueueName: name }).catch(() => undefined)
        return found?.QueueUrl
      }
      const receive = async (url: string): Promise<ReadonlyArray<Message>> => {
        const { Messages = [] } = await sqs.receiveMessage({
          QueueUrl: url,
          MaxNumberOfMessages: 10,
          VisibilityTimeout: readFor,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"]
        })
        return Messages
      }
      /**
       * Every message once, and each back to the tail as it was: SQS would count that it was received, and the letter
       * would not be as it was.
       */
      const read = async (queue: string) => {
        const url = await urlOf(queue)
        if (url === undefined) return []
        const letters: Array<Message> = []
        for (let some = await receive(url); some.length > 0; some = await receive(url)) letters.push(...some)
        for (const { Attributes, Body, MessageAttributes, ReceiptHandle } of letters) {
          const group = Attributes?.MessageGroupId
          const fifo = group && { MessageGroupId: group, MessageDeduplicationId: randomUUID() }
          await sqs.sendMessage({ QueueUrl: url, MessageBody: Body, MessageAttributes, ...fifo })
          await sqs.deleteMessage({ QueueUrl: url, ReceiptHandle })
        }
        return letters.map((letter) => ({
          ...toDelivery(letter, { uncounted: 0, before: 0, now: Date.now() }),
          place: { key: letter.Attributes?.MessageGroupId ?? "" },
          receipt: undefined
        }))
      }
      const harness = Harness.Harness.of({
        name: target.name,
        uniqueQueue: (base) =>
          Effect.promise(async () => {
            const isFifo = base === "keys"
            const fifo = isFifo ? ".fifo" : ""
            const name = `${prefix}-${base.replaceAll(/[^A-Za-z0-9]+/g, "-").slice(0, 40)}-${++queues}${fifo}`
            await sqs.createQueue({ QueueName: name, ...(isFifo ? { Attributes: { FifoQueue: "true" } } : {}) })
            await sleep(target.createTime)
            return name
          }),
        publishRaw: (queue, body, headers) =>
          Effect.promise(async () => {
            const { encoding, text: MessageBody } = Wire.encodeBody(body)
            const marked = encoding === undefined ? headers : { ...headers, [Wire.encodingAttribute]: encoding }
            const MessageAttributes = Object.fromEntries(
              Object.entries(marked).map(([name, value]) => [name, text(value)])
            )
            await sqs.sendMessage({ QueueUrl: await urlOf(queue), MessageBody, MessageAttributes })
          }),
        deadLetters: (queue) => Effect.promise(() => read(queue)),
        pending: (queue) =>
          Effect.promise(async () => {
            const url = await urlOf(queue)
            if (url === undefined) return { ready: 0, inFlight: 0, delayed: 0 }
            const { Attributes = {} } = await sqs.getQueueAttributes({ QueueUrl: url, AttributeNames: ["All"] })
            return {
              ready: Number(Attributes.ApproximateNumberOfMessages),
              inFlight: Number(Attributes.ApproximateNumberOfMessagesNotVisible),
              delayed: Number(Attributes.ApproximateNumberOfMessagesDelayed)
            }
          }),
        cutConnections: target.cutConnections && Effect.sync(target.cutConnections),
        restart: undefined,
        another: open,
        failNext: target.strict && failNext(target.strict),
        deleteQueue: (queue) =>
          Effect.promise(async () => {
            await sqs.deleteQueue({ QueueUrl: await urlOf(queue) })
          }),
        foreignQueue: undefined,
        // No crash of the service is visible to its clients.
        crash: undefined,
        powerCut: undefined,
        transactions: undefined,
        lateness: target.lateness,
        settleTime: target.settleTime
      })
      return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
    })
  )
