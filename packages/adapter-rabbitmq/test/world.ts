/** What fault tests share: many messages, handlers that fail now and then, and the books. */
import { Broker, type Service } from "@requeue/core/Broker"
import { BrokerError } from "@requeue/core/BrokerError"
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import type { Event } from "@requeue/core/Event"
import * as Outgoing from "@requeue/core/Outgoing"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { connect } from "amqplib"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { RabbitMqBroker, type RabbitMqOptions } from "../src/index.ts"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Runs a program on a broker, without logs. */
export const on = <A>(
  options: RabbitMqOptions.Options,
  program: (broker: Service) => Effect.Effect<A, unknown, Broker | Scope.Scope>
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(RabbitMqBroker.make(options), (broker) =>
      Effect.provideService(program(broker), Broker, broker)
    ).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
  )

export const outgoing = (queue: string, id: string, delay = 0): Outgoing.Outgoing =>
  Outgoing.make({ queue, id, body: bytes(JSON.stringify(id)), headers: {}, delay }, Date.now())

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
export const until = (what: string | (() => string), condition: () => boolean, within = 60_000): Effect.Effect<void> =>
  Effect.promise(async () => {
    const end = Date.now() + within
    while (!condition()) {
      if (Date.now() > end) throw new Error(`${typeof what === "string" ? what : what()}: not within ${within} ms`)
      await sleep(20)
    }
  })

export interface Books {
  readonly runs: Map<string, number>
  readonly acked: Set<string>
  readonly dead: Set<string>
  readonly events: Array<Event>
  readonly ended: () => number
  lastRun: number
}

export const books = (): Books => {
  const acked = new Set<string>()
  const dead = new Set<string>()
  return {
    runs: new Map(),
    acked,
    dead,
    events: [],
    ended: () => new Set([...acked, ...dead]).size,
    lastRun: 0
  }
}

/** A consumer whose handler fails for a part of the messages: some for good, some only at first. */
export const work = (queue: string, ledger: Books, options: Consumer.Options = {}, handle = 1) =>
  Consumer.start<string>(
    queue,
    {
      retry: RetryPolicy.make({ maxRetries: 4, backoff: Backoff.constant(100) }),
      concurrency: 20,
      onEvent: (event) => {
        ledger.events.push(event)
        if (event._tag === "Succeeded") ledger.acked.add(event.id)
        if (event._tag === "DeadLettered") ledger.dead.add(event.id)
      },
      ...options
    },
    (message) => {
      ledger.runs.set(message.id, (ledger.runs.get(message.id) ?? 0) + 1)
      ledger.lastRun = Date.now()
      const number = Number(message.id.slice(1))
      const fails = number % 50 === 0 || (number % 5 === 0 && message.attempts < 3)
      return Effect.andThen(Effect.sleep(handle), fails ? Effect.fail(new Error("no")) : Effect.void)
    }
  )

/** The ids in a queue, seen by another client, and taken out. */
export const drainIds = async (url: string, queue: string): Promise<ReadonlyArray<string>> => {
  const model = await connect(url)
  model.on("error", () => {})
  const channel = await model.createChannel()
  channel.on("error", () => {})
  const found: Array<string> = []
  try {
    for (let message = await channel.get(queue, { noAck: true }); message !== false; ) {
      found.push(String(message.properties.messageId))
      message = await channel.get(queue, { noAck: true })
    }
  } finally {
    await model.close().catch(() => {})
  }
  return found
}

export const reasonOf = (error: unknown): unknown => (error instanceof BrokerError ? error.reason : undefined)
