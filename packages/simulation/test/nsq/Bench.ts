/** Programs on the adapter that ships and on simulated nsqd, in virtual time. */
import { NsqBroker, type NsqOptions } from "@requeue/adapter-nsq"
import { VirtualTime, Workload } from "@requeue/conformance"
import { Broker, Consumer, type Event, type Handler } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import type { Network } from "../../src/servers/nsq/index.ts"
import { type Settings, world, type World } from "./harness.ts"
import { placesOf } from "./queues.ts"

type Program<A> = (broker: Broker.Service) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>

export interface Bench extends World {
  /** Runs a program on a broker of another process. */
  readonly on: <A>(program: Program<A>, options?: NsqOptions.Options) => Effect.Effect<A, unknown>
  /** Creates queues on all nsqd, and waits until nsqd scans their channels. */
  readonly warm: (...queues: ReadonlyArray<string>) => Effect.Effect<void>
}

/** A sentence about the adapter, and the program that proves it. */
export interface OwnCase {
  readonly name: string
  readonly settings?: Settings
  readonly program: (bench: Bench) => Effect.Effect<void, unknown, Scope.Scope>
}

/** Milliseconds of virtual time after which a case has failed: a broken adapter may wait forever. */
const longest = 600_000

/** Runs a case. `make` makes the broker. Default: the adapter as it is. */
export const run = ({ program, settings }: OwnCase, make: typeof NsqBroker.make = NsqBroker.make): Promise<void> =>
  Effect.gen(function* () {
    const all = yield* world(settings)
    const bench: Bench = {
      ...all,
      on: (of, options) =>
        Effect.scoped(
          Effect.flatMap(all.open(options, make), (broker) => Effect.provideService(of(broker), Broker.Broker, broker))
        ),
      warm: (...queues) =>
        Effect.suspend(() => {
          for (const nsqd of all.nsqd) {
            for (const { channel, topic } of queues.flatMap(placesOf)) nsqd.topic(topic).channel(channel)
          }
          return Effect.sleep(5001)
        })
    }
    yield* Effect.timeout(program(bench), longest)
  }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"), VirtualTime.run, Effect.runPromise)

/** Monotonic milliseconds. */
export const elapsed = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

export interface Run {
  readonly id: string
  readonly attempts: number
  /** Monotonic milliseconds. */
  readonly at: number
}

/** A consumer that records its runs. */
export const consume = (
  queue: string,
  runs: Array<Run>,
  options: Consumer.Options = {},
  handler: (message: Parameters<Handler.MessageHandler<string>>[0]) => unknown = () => {}
) =>
  Effect.flatMap(Clock.Clock, (clock) =>
    Consumer.start<string>(queue, options, (message) => {
      const at = Number(clock.monotonicTimeNanosUnsafe()) / 1e6
      runs.push({ id: message.id, attempts: message.attempts, at })
      return handler(message) as void // a handler may return anything that handlers return
    })
  )

/** A failure of a handler. */
export const no = () => Effect.fail(new Error("no"))

/** Publishes a message. */
export const send = (
  broker: Broker.Service,
  queue: string,
  id: string,
  { body, delay = 0 }: { readonly delay?: number; readonly body?: Uint8Array } = {}
) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const message = Workload.outgoing(queue, id, { now, delay })
    return broker.publish([body === undefined ? message : { ...message, body }])
  })

/** Collects events. */
export const events = () => {
  const all: Array<Event.Event> = []
  const of = <Tag extends Event.Event["_tag"]>(tag: Tag) =>
    all.filter((event): event is Extract<Event.Event, { readonly _tag: Tag }> => event._tag === tag)
  return { of, tags: () => all.map(({ _tag }) => _tag), onEvent: (event: Event.Event) => void all.push(event) }
}

/** Records the commands that pass. */
export const recorded = (network: Network.Network) => {
  const all: Array<Network.Passing> = []
  network.failNext("refused", (passing) => {
    all.push(passing)
    return false
  })
  return (...names: ReadonlyArray<string>) => all.filter(({ command: { name } }) => names.includes(name))
}
