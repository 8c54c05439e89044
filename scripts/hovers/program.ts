/** A newcomer's program. Nothing here runs: an editor must describe every name in it. */
import { NsqBroker } from "@requeue/adapter-nsq"
import { RabbitMqBroker } from "@requeue/adapter-rabbitmq"
import { SqsBroker } from "@requeue/adapter-sqs"
import { SqsLambda } from "@requeue/adapter-sqs/lambda"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Testing from "@requeue/adapter-memory/testing"
import { Consumer, Producer, QueueDefinition, RetryPolicy } from "@requeue/core"
import { SchemaCodec } from "@requeue/core/schema"
import {
  connect,
  constant,
  DropError,
  exponential,
  isLive,
  isReady,
  linear,
  PermanentError,
  queue,
  RetryLaterError,
  sequence,
  standard,
  switchAfter
} from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"

declare const schema: Parameters<typeof standard>[0]

const requeue = await connect("memory:", {
  logger: "json",
  logLevel: "Info",
  maxPending: 10,
  publishTimeout: "5 seconds",
  adapters: []
})
const orders = queue("orders", { schema, delay: "1 second" })
const others = QueueDefinition.make("others", { codec: standard(schema) })

await requeue.send(orders, {}, { id: "o1", headers: { tenant: "acme" }, delay: "10 seconds", native: {} })
await requeue.sendBatch(others, [{ body: {}, id: "o2", headers: {}, delay: 0 }], { delay: "1 minute" })

const worker = await requeue.consume(
  orders,
  {
    retry: {
      maxRetries: 5,
      maxDeliveries: 20,
      maxAge: "1 day",
      immediate: 1,
      backoff: exponential("1 second", { factor: 2, max: "5 minutes", jitter: "full" }),
      classify: { permanent: ["ValidationError"], drop: [], uncounted: [], with: () => undefined },
      deadLetter: { queue: "orders.dead", routes: { undecodable: "orders.broken" }, redact: (error) => error }
    },
    retryDelay: "5 seconds",
    batch: { maxBatchSize: 10, maxBatchTimeout: "1 second" },
    concurrency: 10,
    prefetch: 0,
    handlerTimeout: "1 minute",
    consumerBackoff: {
      form: "ratio",
      failureRatio: 0.5,
      minAttempts: 20,
      window: "30 seconds",
      multiplier: "1 second",
      maxBackoffDuration: "2 minutes",
      strategy: "full-jitter",
      recovery: "resume"
    },
    deadLetterBudget: { max: 100, perSuccess: 0.1 },
    drainTimeout: "20 seconds",
    onLimit: "clamp",
    stackTraces: false,
    onEvent: (event) => event._tag
  },
  (message, context) => {
    if (context.signal.aborted || message.attempts > 3) throw new PermanentError("given up")
    if (message.headers["tenant"] === message.id) throw new DropError("worthless")
    if (message.timestamp === message.body) throw new RetryLaterError({ message: "busy", retryAfter: 5 })
    message.retry({ delay: "30 seconds" })
    message.fail(new Error("no"))
    message.ack()
  }
)
await requeue.consumeBatch(others, { retry: { maxAttempts: 4, backoff: linear("10 seconds") } }, (batch) => {
  for (const one of batch.messages) one.ack()
  batch.retryAll({ delay: "1 minute" })
  batch.ackAll()
})
const puller = await requeue.puller("orders", { lease: "1 minute", maxOpen: 2 })
await puller.pull({ wait: "1 second" })
constant("1 second")
sequence(["1 second"])
switchAfter(2, constant(0), constant(1))

const dead = deadLetters(requeue, "orders.dlq")
await dead.count()
await dead.group()
await dead.list({ limit: 10 })
await dead.redrive({ dryRun: true, limit: 10, rate: 10, to: "orders", filter: () => true, stages: [1], stopAt: 0.1 })
await dead.purge({ all: true })
await dead.park({ dryRun: true, limit: 1, to: "orders.parked" })
await requeue.counts("orders", { timeout: "1 second" })
isReady(await requeue.health())
isLive(await requeue.health())
await worker.pause()
await worker.resume()
await worker.drain()
await requeue.close("10 seconds")

RetryPolicy.make({ maxRetries: 5 })
Consumer.start("orders", {}, () => {})
Producer.make("orders", { maxPending: 1 })
SchemaCodec.make
MemoryBroker.layer({ maxMessages: 10, maxBodySize: 10 })
export const handler = SqsLambda.handler(
  "orders",
  {
    retry: { maxAttempts: 3 },
    concurrency: 10,
    retryDelay: 0,
    handlerTimeout: "1 minute",
    sqs: { url: "sqs://eu-west-1" },
    reserve: "1 second"
  },
  () => {}
)
const broker = await Testing.open()
await broker.advance("1 minute")
await broker.waitUntilIdle()
broker.now()
await broker.deadLettersOf("orders")

RabbitMqBroker.layer({
  url: "amqp://127.0.0.1",
  username: "u",
  password: "p",
  hosts: [],
  heartbeat: 10_000,
  connectTimeout: 10_000,
  requestTimeout: 10_000,
  publishTimeout: 10_000,
  maxUnconfirmed: 1000,
  queueType: "quorum",
  deliveryLimit: 1000,
  topology: "auto",
  prefix: "requeue",
  assert: "declare",
  management: "http://127.0.0.1:15672",
  tls: {},
  queues: { orders: { type: "classic", deliveryLimit: 10, bindings: [], assert: "passive" } }
})
NsqBroker.layer({
  url: "nsq://127.0.0.1",
  nsqd: [],
  nsqdHttp: [],
  lookupd: [],
  channel: "requeue",
  authSecret: "s",
  compression: "none",
  messageTimeout: 60_000,
  retry: "exact",
  envelope: "never",
  publishTo: 1,
  create: true
})
SqsBroker.layer({
  url: "sqs://eu-west-1",
  accessKeyId: "k",
  secretAccessKey: "s",
  sessionToken: "t",
  queues: "verify",
  waitTime: 20_000,
  pollers: 10,
  visibilityTimeout: 30_000,
  inFlightLimit: 60_000,
  fifoRetry: "block",
  connectTimeout: 5000,
  requestTimeout: 10_000,
  retention: 345_600_000,
  deadLetterRetention: 1_209_600_000,
  maxReceiveCount: 10,
  encryption: "sqs",
  tags: {}
})
