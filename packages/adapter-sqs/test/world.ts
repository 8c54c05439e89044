/** What fault tests share: many messages, handlers that fail now and then, and the books. */
import type { Message, SQS } from "@aws-sdk/client-sqs"
import { Broker, type Service } from "@requeue/core/Broker"
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import type { Event } from "@requeue/core/Event"
import type { MessageHandler } from "@requeue/core/Handler"
import * as Metadata from "@requeue/core/Metadata"
import * as Outgoing from "@requeue/core/Outgoing"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { assert } from "vitest"
import * as Names from "../src/internal/names.ts"
import type { Moved } from "./clock.ts"
import { SqsBroker, type SqsOptions } from "../src/index.ts"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Runs a program on a broker, without logs; `by` runs all of it by another clock. Polls are short, so that its end is. */
export const on = <A>(
  options: SqsOptions.Options,
  program: (broker: Service) => Effect.Effect<A, unknown, Broker | Scope.Scope>,
  by: Moved["run"] = (all) => all
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(SqsBroker.make({ waitTime: 1000, ...options }), (broker) =>
      Effect.provideService(program(broker), Broker, broker)
    ).pipe(Effect.scoped, by, Effect.provideService(References.MinimumLogLevel, "None"))
  )

export const outgoing = (
  queue: string,
  id: string,
  { delay = 0, headers = {}, now = Date.now() }: { delay?: number; headers?: Record<string, string>; now?: number } = {}
): Outgoing.Outgoing => Outgoing.make({ queue, id, body: bytes(JSON.stringify(id)), headers, delay }, now)

export const ids = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, index) => `m${index}`)

/** Publishes each until it is confirmed: a failed publish may have been stored, and is sent again. */
export const publishAll = (broker: Service, queue: string, names: ReadonlyArray<string>, size = 100) =>
  Effect.gen(function* () {
    for (let from = 0; from < names.length; from += size) {
      const part = names.slice(from, from + size).map((id) => outgoing(queue, id))
      yield* Effect.retry(broker.publish(part), Schedule.spaced(100))
    }
  })

/** Waits for a condition of this process. */
export const until = (
  what: string | (() => string),
  condition: () => boolean | Promise<boolean>,
  within = 60_000
): Effect.Effect<void> =>
  Effect.promise(async () => {
    const end = Date.now() + within
    while (!(await condition())) {
      if (Date.now() > end) throw new Error(`${typeof what === "string" ? what : what()}: not within ${within} ms`)
      await sleep(20)
    }
  })

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
  handler: MessageHandler<string> = () => Effect.void
) =>
  Consumer.start<string>(queue, options, (message, context) => {
    runs.push({ id: message.id, attempts: message.attempts, at: Date.now() })
    return handler(message, context)
  })

/** What a handler returns that fails. */
export const no = Effect.fail(new Error("no"))

export interface Books {
  readonly runs: Map<string, number>
  /** Handled well; that it is out of the queue as well is for the server to say. */
  readonly acked: Set<string>
  readonly dead: Set<string>
  readonly events: Array<Event>
  readonly ended: () => number
}

export const books = (): Books => {
  const [acked, dead] = [new Set<string>(), new Set<string>()]
  return { runs: new Map(), acked, dead, events: [], ended: () => new Set([...acked, ...dead]).size }
}

const fails = (id: string, attempts: number): boolean => {
  const number = Number(id.slice(1))
  return number % 50 === 0 || (number % 10 === 0 && attempts < 3)
}

/** A consumer whose handler fails for a part of the messages: every fiftieth for good, every tenth twice. */
export const work = (queue: string, ledger: Books, options: Consumer.Options = {}) =>
  Consumer.start<string>(
    queue,
    {
      retry: RetryPolicy.make({ maxRetries: 4, backoff: Backoff.constant(100) }),
      concurrency: 20,
      onEvent: (event) => {
        ledger.events.push(event)
        if (event._tag === "DeadLettered") ledger.dead.add(event.id)
      },
      ...options
    },
    (message) => {
      ledger.runs.set(message.id, (ledger.runs.get(message.id) ?? 0) + 1)
      const well = Effect.sync(() => ledger.acked.add(message.id))
      return Effect.andThen(Effect.sleep(1), fails(message.id, message.attempts) ? no : well)
    }
  )

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
export const untilEmpty = (sqs: SQS, queue: string, within = 20_000): Effect.Effect<void> =>
  until(`nothing left in ${queue}`, async () => (await left(sqs, queue)) === 0, within)

/** Published = acked + dead-lettered + still queued, where nothing is left to do; those that must fail are dead. */
export const balance = async (sqs: SQS, queue: string, all: ReadonlyArray<string>, { acked }: Books): Promise<void> => {
  assert.strictEqual(await left(sqs, queue), 0, "still queued")
  const letters = new Set((await drain(sqs, `${queue}.dlq`)).map(idOf))
  assert.strictEqual(new Set([...acked, ...letters]).size, all.length, "acked and dead-lettered")
  const doomed = all.filter((id) => fails(id, Infinity))
  assert.deepStrictEqual([...letters].toSorted(), doomed.toSorted())
}
