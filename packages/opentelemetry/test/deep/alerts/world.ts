/** A queue of the memory broker in virtual time. Its process is scraped as Prometheus does it, and its broker fails. */
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus"
import { MeterProvider } from "@opentelemetry/sdk-metrics"
import { MemoryBroker, type Faults } from "@requeue/adapter-memory"
import { Recording, VirtualTime } from "@requeue/conformance"
import { Broker, BrokerError, Producer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { OpenTelemetry } from "../../../src/index.ts"
import { interval, type Scrape } from "./samples.ts"

/** Breaks the broker, or the process. */
export interface Outage {
  readonly faults: Recording.Faults
  /** Loses the connection: nothing is sent, delivered or counted until it is back. */
  readonly disconnect: (isDown: boolean) => void
  /** Delivers nothing until it is over. */
  readonly hold: (isHeld: boolean) => void
  /** Answers no settlement any more. */
  readonly hang: () => void
  /** Ends the process, as its scrapes see it. */
  readonly vanish: () => void
}

/** A program of a scenario. */
export type Program<A = void> = Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>

/** Makes an error of the broker. */
export const failure = (reason: BrokerError.Reason): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "memory", operation: "settle", reason, detail: "as the scenario says" })

/** Makes a broker that a scenario breaks. */
const breakable = ({ broker, faults }: Recording.Recording, vanish: () => void) => {
  let isDown = false
  let isHeld = false
  let hangs = false
  const subscriptions: Array<() => void> = []
  const refresh = () => subscriptions.forEach((apply) => apply())
  const service: Broker.Service = {
    ...broker,
    connection: () => (isDown ? { state: "down", since: 0 } : broker.connection()),
    admin: {
      ...broker.admin,
      counts: (queue) =>
        Effect.suspend(() => (isDown ? Effect.fail(failure("ConnectionFailed")) : broker.admin.counts(queue)))
    },
    subscribe: (options) =>
      Effect.map(broker.subscribe(options), (subscription) => {
        let credit = 0
        const apply = () => subscription.credit(isDown || isHeld ? 0 : credit)
        subscriptions.push(apply)
        return {
          ...subscription,
          credit: (limit) => {
            credit = limit
            apply()
          },
          settle: (requests) => Effect.suspend(() => (hangs ? Effect.never : subscription.settle(requests)))
        }
      })
  }
  const outage: Outage = {
    faults,
    disconnect: (down) => {
      isDown = down
      faults.publish = down ? () => Effect.fail(failure("ConnectionFailed")) : undefined
      refresh()
    },
    hold: (held) => {
      isHeld = held
      refresh()
    },
    hang: () => void (hangs = true),
    vanish
  }
  return { service, outage }
}

/** Sends a message every so many milliseconds, for ever, whatever becomes of it. */
export const load = (queue: string, every: number): Program =>
  Effect.gen(function* () {
    const producer = yield* Producer.make<number>(queue)
    const sendAll = Effect.gen(function* () {
      for (let n = 0; ; n++) {
        yield* Effect.ignore(producer.send(n))
        yield* Effect.sleep(every)
      }
    })
    yield* Effect.forkScoped(sendAll)
  })

/** Runs a program, and answers what each of the scrapes found. */
export const scrape = (
  minutes: number,
  faults: Faults.Faults,
  program: (outage: Outage) => Program
): Promise<ReadonlyArray<Scrape>> => {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const meterProvider = new MeterProvider({ readers: [exporter] })
  const serializer = new PrometheusSerializer()
  const answer = Effect.promise(async () => serializer.serialize((await exporter.collect()).resourceMetrics))

  const scraped = Effect.gen(function* () {
    let isGone = false
    const { broker } = yield* MemoryBroker.makeControlled({ faults })
    const { outage, service } = breakable(yield* Recording.make(broker), () => void (isGone = true))
    yield* program(outage).pipe(Effect.orDie, Effect.forkScoped, Effect.provideService(Broker.Broker, service))
    const scrapes: Array<Scrape> = []
    for (let second = 0; second <= minutes * 60; second += interval) {
      scrapes.push(isGone ? undefined : yield* answer)
      yield* Effect.sleep(interval * 1000)
    }
    return scrapes
  })
  const quiet = Layer.succeed(References.MinimumLogLevel, "None")
  const layer = Layer.merge(OpenTelemetry.layer({ meterProvider }), quiet)
  return Effect.runPromise(VirtualTime.run(Effect.provide(Effect.scoped(scraped), layer)))
}
