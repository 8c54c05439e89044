/** A console whose queues have policies of every form, on a memory broker and as the other brokers plan them. */
import { adapter as memory, MemoryBroker } from "@requeue/adapter-memory"
import { adapter as nsq } from "@requeue/adapter-nsq"
import { adapter as rabbitmq } from "@requeue/adapter-rabbitmq"
import { adapter as sqs } from "@requeue/adapter-sqs"
import { Adapters, Backoff, BatchPolicy, Broker, BrokerError, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import { type Adapter, type ConsumerOptions } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Authorization, BrokerSource, Console } from "../src/index.ts"
import * as World from "./world.ts"

/** A name that is an attack, as far as a config file can have it. */
export const hostile = `<img src=x onerror=alert(1)>"'\u202e%2f${"long-".repeat(40)}`

/** Options of consumers, by the names of their queues. */
export const forms: Readonly<Record<string, ConsumerOptions.Options>> = {
  orders: {},
  fixed: { retry: RetryPolicy.make({ maxRetries: 4, backoff: Backoff.constant("30 seconds") }), concurrency: 8 },
  growing: {
    retry: RetryPolicy.make({
      maxRetries: 9,
      maxAge: "3 hours",
      backoff: Backoff.exponential("5 seconds", { max: "1 hour", jitter: "equal" }),
      classify: { permanent: ["InvalidCard"], drop: ["Duplicate"] },
      deadLetter: { routes: { permanent: "rejects" } }
    }),
    batch: BatchPolicy.make({ maxBatchSize: 50 }),
    consumerBackoff: ConsumerBackoff.make()
  },
  ladder: { retry: RetryPolicy.webhookSender },
  once: { retry: RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" }) },
  hot: { retry: RetryPolicy.make({ maxRetries: "unlimited", maxDeliveries: "unlimited" }) },
  forever: {
    retry: RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.exponential("1 second", { max: "1 minute" }) })
  },
  thousands: { retry: RetryPolicy.make({ maxRetries: 5000, backoff: Backoff.linear("1 second", { max: "1 hour" }) }) },
  days: { retry: RetryPolicy.make({ maxRetries: 20, backoff: Backoff.constant("24 hours", { jitter: "full" }) }) },
  switched: {
    retry: RetryPolicy.make({
      maxRetries: 6,
      backoff: Backoff.switchAfter(2, Backoff.constant(0), Backoff.linear("15 minutes"))
    })
  },
  [hostile]: { retry: RetryPolicy.make({ deadLetter: `${hostile}.dead` }) }
}

/** All of these queues. */
const queues = Object.entries(forms).map(([name, options]) => BrokerSource.queueOf({ name, options }))

const down = Layer.effect(
  Broker.Broker,
  Effect.fail(
    new BrokerError.BrokerError({
      broker: "it",
      operation: "connect",
      reason: "ConnectionFailed",
      detail: "connect ECONNREFUSED 10.0.0.9",
      remedy: "Does it run?"
    })
  )
)

/** The operations of an adapter at a URL. */
export const operationsOf = (adapter: Adapter.Adapter, url: string) =>
  BrokerSource.operationsOf(Adapters.find(url, { adapters: [adapter] }))

/** Brokers that are down: their adapters plan without them. */
export const planners = [
  ["rabbitmq", rabbitmq, "amqp://guest:s3cret-word@127.0.0.1:1"],
  ["nsq", nsq, "nsq://127.0.0.1:1"],
  ["sqs", sqs, "sqs://key:secret@127.0.0.1:1?region=eu-west-1"]
] as const

/** The sources of the console. `compared` replaces the operations of the memory broker. */
export const make = (options: Partial<Console.Options> = {}, compared?: BrokerSource.Operations) =>
  Effect.gen(function* () {
    const broker = yield* MemoryBroker.make()
    yield* World.queueOfLetters(broker)
    const brokers: ReadonlyArray<BrokerSource.BrokerSource> = [
      {
        name: "memory",
        queues,
        layer: Layer.succeed(Broker.Broker, broker),
        secrets: ["s3cret-word"],
        operations: compared ?? operationsOf(memory, "memory:")
      },
      ...planners.map(([name, adapter, url]) => ({
        name,
        queues,
        layer: down,
        secrets: [],
        operations: operationsOf(adapter, url)
      }))
    ]
    const authorize = Authorization.everybody("oncall", "purge")
    const console = yield* Console.make({ brokers, audit: () => {}, authorize, ...options })
    return { broker, console, ...World.browser(console) }
  })

/** The address of a queue's page. */
export const pathOf = (broker: string, queue: string, more: Readonly<Record<string, string>> = {}): string =>
  `/queue?${new URLSearchParams({ broker, queue, ...more }).toString()}`
