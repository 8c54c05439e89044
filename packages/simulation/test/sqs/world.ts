/** A simulated SQS with the adapter on it, for tests that need more of the server than the cases of the suite. */
import { SqsBroker, type SqsOptions } from "@requeue/adapter-sqs"
import { Driver } from "@requeue/adapter-sqs/driver"
import { Port, VirtualTime, Wait, Workload } from "@requeue/conformance"
import { Broker, Consumer, type Event, type Handler, RetryPolicy } from "@requeue/core"
import { Metadata, type Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import * as Api from "../../src/servers/sqs/Api.ts"
import type { Name } from "../../src/servers/sqs/AwsError.ts"
import * as SqsDriver from "../../src/servers/sqs/Driver.ts"
import type { Fault, Where } from "../../src/servers/sqs/Faults.ts"
import type { Message } from "../../src/servers/sqs/Message.ts"
import * as Server from "../../src/servers/sqs/Server.ts"
import { nameOf, open, options as defaults } from "./harness.ts"

export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute

/** A run of a handler. */
export interface Run {
  readonly id: string
  readonly attempts: number
  readonly at: number
}

/** The options of a test. */
export interface Options extends Partial<SqsOptions.Options>, Omit<Server.Options, "region" | "account" | "inFlight"> {
  /** The quota of messages of one queue in flight. */
  readonly inFlight?: number
}

export const no = Effect.fail(new Error("no"))

export const ids = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, index) => `m${index}`)

/** The id of a message in its metadata, or else SQS's. */
const idOf = ({ content, id }: Message): string =>
  Metadata.decode(content.attributes["requeue"]?.StringValue ?? "")?.id ?? id

/** Waits for a condition. */
export const until = (what: string, holds: () => boolean) => Wait.until(what, holds)

/**
 * Makes what the tests of one server share.
 *
 * Long, because each member is a line of the result.
 */
const make = Effect.fnUntraced(function* (options: Options) {
  const { attributesTake, countsAge, happens, inFlight, listen, obeysOld, ...sqs } = options
  const given = { attributesTake, countsAge, happens, inFlight, listen, obeysOld }
  const settings: Server.Options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const { host, network, server } = yield* open(settings)
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  let processes = 0
  /** Runs an effect with the clients of another process. */
  const elsewhere = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => Effect.provideService(effect, Driver, SqsDriver.make(host, network, `p${++processes}`)))
  const connection = { ...defaults, ...sqs }
  /** The broker of another process. */
  const broker = (more: Partial<SqsOptions.Options> = {}) => elsewhere(SqsBroker.make({ ...connection, ...more }))
  const messages = (queue: string): ReadonlyArray<Message> => server.queue(nameOf(queue))?.store.all() ?? []
  const counts = (queue: string): ReadonlyArray<number> => {
    const {
      delayed,
      inFlight: hidden,
      ready
    } = server.queue(nameOf(queue))?.store.counts() ?? { ready: 0, inFlight: 0, delayed: 0 }
    return [ready, hidden, delayed]
  }
  const at = (action: string, more: Where = {}): Where => ({ actions: [action], ...more })
  return {
    server,
    network,
    now,
    connection,
    elsewhere,
    broker,
    /** A call beside all clients. */
    ask: (action: string, queue: string, body: Api.Body = {}): Effect.Effect<object> =>
      Effect.callback((resume) =>
        server.handle(Api.call(action, { QueueUrl: server.queue(nameOf(queue))?.url, ...body }), (reply) =>
          resume(Effect.orDie(Effect.fromResult(reply)))
        )
      ),
    /** The next calls of this kind are refused. Default: one. */
    fail: (action: string, error: Name, more?: Where): Fault =>
      network.faults.add(at(action, more), { _tag: "refused", error }),
    failEntries: (action: string, error: Name, places: ReadonlyArray<number>, more?: Where): Fault =>
      network.faults.add(at(action, more), { _tag: "refusedEntries", error, places }),
    /** They are done, and not answered. */
    lose: (action: string, how: "silence" | "reset", more?: Where): Fault =>
      network.faults.add(at(action, more), { _tag: how === "reset" ? "brokenAnswer" : "lostAnswer" }),
    /** Their requests take longer. */
    slow: (action: string, millis: number): Fault => network.faults.add(at(action), { _tag: "slow", millis }),
    calls: (action: string): number => network.calls()[action] ?? 0,
    counts,
    messages,
    idsIn: (queue: string): ReadonlyArray<string> => messages(queue).map(idOf).toSorted(),
    left: (queue: string): number => messages(queue).length,
    untilCounts: (queue: string, ...wanted: ReadonlyArray<number>) =>
      until(`${wanted.join()} in ${queue}`, () => counts(queue).join() === wanted.join()),
    untilEmpty: (queue: string) => until(`nothing left in ${queue}`, () => messages(queue).length === 0),
    send: (to: Broker.Service, queue: string, names: ReadonlyArray<string>, details: Partial<Workload.Details> = {}) =>
      to.publish(names.map((id) => Workload.outgoing(queue, id, { now: now(), ...details }))),
    /** Starts a consumer that remembers its runs. */
    consume: (
      of: Broker.Service,
      queue: string,
      runs: Array<Run>,
      consumer: Consumer.Options = {},
      handler: Handler.MessageHandler<string> = () => Effect.void
    ) =>
      Effect.provideService(
        Consumer.start<string>(queue, consumer, (message, context) => {
          runs.push({ id: message.id, attempts: message.attempts, at: now() })
          return handler(message, context)
        }),
        Broker.Broker,
        of
      ),
    /** A subscription driven by hand, whose failures are texts. */
    port: (of: Broker.Service, queue: string, credit = 1) =>
      Effect.map(
        Port.open(of, { queue, credit, retry: RetryPolicy.make(), deadLetterQueues: [deadLettersOf(queue)] }),
        (port) => ({
          ...port,
          settle: (...requests: ReadonlyArray<readonly [Parameters<Port.Port["settle"]>[0], Settlement.Settlement]>) =>
            Effect.map(port.settleAll(requests.map(([delivery, settlement]) => ({ delivery, settlement }))), (failed) =>
              failed.map(({ delivery, error, fate }) => `${delivery.metadata.id} ${fate} ${error.reason}`)
            )
        })
      )
  }
})

export const deadLettersOf = (queue: string): string =>
  queue.endsWith(".fifo") ? `${queue.slice(0, -5)}.dlq.fifo` : `${queue}.dlq`

export type World = Effect.Success<ReturnType<typeof make>>

/** Counts events by their tags. */
export const tagged = () => {
  const events: Array<Event.Event> = []
  return {
    events,
    onEvent: (event: Event.Event): void => void events.push(event),
    count: (tag: Event.Event["_tag"]): number => events.filter(({ _tag }) => _tag === tag).length
  }
}

/** Runs a program in virtual time on a server of its own, without logs. */
export const on = <A>(
  options: Options,
  program: (world: World) => Effect.Effect<A, unknown, Scope.Scope>
): Promise<A> =>
  Effect.runPromise(
    VirtualTime.run(Effect.scoped(Effect.flatMap(make(options), program))).pipe(
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )
