/** What these tests share: many messages, handlers that fail now and then, and the books. */
import * as Backoff from "@requeue/core/Backoff"
import { Broker, type Service } from "@requeue/core/Broker"
import * as Consumer from "@requeue/core/Consumer"
import type { Event } from "@requeue/core/Event"
import type { MessageHandler } from "@requeue/core/Handler"
import * as Outgoing from "@requeue/core/Outgoing"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { NsqBroker, type NsqOptions } from "../src/index.ts"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Runs a program on a broker, without logs. */
export const on = <A>(
  options: NsqOptions.Options,
  program: (broker: Service) => Effect.Effect<A, unknown, Broker | Scope.Scope>
): Promise<A> =>
  Effect.runPromise(
    Effect.flatMap(NsqBroker.make(options), (broker) => Effect.provideService(program(broker), Broker, broker)).pipe(
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )

export const outgoing = (queue: string, id: string, delay = 0): Outgoing.Outgoing =>
  Outgoing.make({ queue, id, body: bytes(JSON.stringify(id)), headers: {}, delay }, Date.now())

export const ids = (count: number, prefix = "m"): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`)

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

export interface Run {
  readonly id: string
  readonly attempts: number
  /** Monotonic milliseconds. */
  readonly at: number
}

/** A consumer that writes down its runs. */
export const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options = {},
  handler: (message: Parameters<MessageHandler<string>>[0]) => unknown = () => {}
) =>
  Consumer.start<string>(queue, options, (message) => {
    runs.push({ id: message.id, attempts: message.attempts, at: performance.now() })
    return handler(message) as void
  })

/** A handler's failure. */
export const no = () => Effect.fail(new Error("no"))

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

/** Messages that fail for good, and become dead letters. */
export const isDoomed = (id: string): boolean => Number(id.slice(1)) % 50 === 0

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
      const fails = isDoomed(message.id) || (Number(message.id.slice(1)) % 5 === 0 && message.attempts < 3)
      return Effect.andThen(Effect.sleep(handle), fails ? Effect.fail(new Error("no")) : Effect.void)
    }
  )

/** Ends when every message has ended, and names those that have not when it takes too long. */
export const allEnded = (ledger: Books, all: ReadonlyArray<string>, within = 60_000) => {
  const missing = () => all.filter((id) => !ledger.acked.has(id) && !ledger.dead.has(id))
  const said = () =>
    `an end of every message; of ${missing().length} there is none: ${missing().slice(0, 20).join(" ")}`
  return until(said, () => missing().length === 0, within)
}
