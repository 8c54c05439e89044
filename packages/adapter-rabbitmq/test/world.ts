/** Helpers of all tests: a broker to run on, controls of its lateness, and another client that looks into its queues. */
import { Books, Control, Measured } from "@requeue/conformance"
import * as Workload from "@requeue/conformance/Workload"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { connect } from "amqplib"
import { randomUUID } from "node:crypto"
import { RabbitMqBroker, type RabbitMqOptions } from "../src/index.ts"

export { until } from "@requeue/conformance/Wait"
export { ids, publishAll } from "@requeue/conformance/Workload"

export const queueName = (base: string): string => `${base}-${randomUUID().slice(0, 8)}`

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

export const outgoing = (queue: string, id: string, details: Partial<Workload.Details> = {}) =>
  Workload.outgoing(queue, id, { now: Date.now(), ...details })

type Program<A> = (broker: Broker.Service) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>

/** Monotonic milliseconds since the epoch, with fractions. */
export const now = (): number => performance.timeOrigin + performance.now()

/** Runs a program on a broker, without logs. */
export const on = <A>(options: RabbitMqOptions.Options, program: Program<A>): Promise<A> =>
  Effect.runPromise(running(options, program))

const running = <A>(options: RabbitMqOptions.Options, program: Program<A>): Effect.Effect<A, unknown> =>
  Effect.flatMap(RabbitMqBroker.make(options), (broker) =>
    Effect.provideService(program(broker), Broker.Broker, broker)
  ).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))

/** Keeps controls of a broker going. */
const controls = (broker: Broker.Service) => Control.make(broker, queueName("control"))

/** Waits until what is under way on a broker would have been seen: messages that are sent from now on are back. */
export const quiet = (broker: Broker.Service) => Effect.scoped(Effect.flatMap(controls(broker), ({ pulse }) => pulse))

/** A test that runs a program on a broker beside controls, and again where they were too late to tell. */
export const measure = (
  context: Measured.TestContext,
  options: RabbitMqOptions.Options,
  program: (broker: Broker.Service, control: Control.Service) => ReturnType<Program<void>>
): Promise<void> =>
  Measured.inTest(
    context,
    running(options, (broker) => Effect.flatMap(controls(broker), (control) => program(broker, control)))
  )

/** All messages that a browser shows until a page is empty, or until there are as many. */
export const shown = ({ next }: Broker.Browser, most = Number.POSITIVE_INFINITY) =>
  Effect.gen(function* () {
    const seen: Array<Broker.BrowsedMessage> = []
    while (seen.length < most) {
      const page = yield* next(Math.min(100, most - seen.length))
      if (page.length === 0) break
      seen.push(...page)
    }
    return seen
  })

/** Up to `limit` waiting messages, which are returned. */
export const browse = ({ admin }: Broker.Service, queue: string, limit: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const browser = yield* admin.browse({ queue, from: "ready", limit })
      return (yield* shown(browser, limit)).map(({ delivery }) => delivery)
    })
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

/** Balances the books with what another client takes out of the server; answers that. */
export const balance = async (url: string, queue: string, books: Books.Books): Promise<Books.Found> => {
  const found = { deadLetters: await drainIds(url, `${queue}.dlq`), queued: await drainIds(url, queue) }
  Books.balance(books, found)
  return found
}

export const reasonOf = (error: unknown): unknown =>
  error instanceof BrokerError.BrokerError ? error.reason : undefined
