/** The RabbitMQ adapter on a simulated server, with a harness that looks into that server. */
import { RabbitMqBroker, RabbitMqOptions, RabbitMqPlan } from "@requeue/adapter-rabbitmq"
import { Driver } from "@requeue/adapter-rabbitmq/driver"
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Host from "../../src/servers/Host.ts"
import { make as makeDriver } from "../../src/servers/rabbitmq/Driver.ts"
import type { Sent } from "../../src/servers/rabbitmq/Faults.ts"
import * as Fields from "../../src/servers/rabbitmq/Fields.ts"
import { type Options, Server } from "../../src/servers/rabbitmq/Server.ts"
import { toDelivery } from "./letters.ts"

/** Milliseconds that a restart takes. */
const restarting = 1000

/** The adapter under test, which a mutant may have broken. */
export class Adapter extends Context.Service<
  Adapter,
  { readonly RabbitMqBroker: Pick<typeof RabbitMqBroker, "make"> }
>()("requeue/simulation/test/rabbitmq/Adapter") {}

/** The failures that the wire can make. A refusal closes the channel on this server, as on the real one. */
const failNext =
  (server: Server): Harness.FailNext =>
  (operation, failure, queue) => {
    if (failure === "refused" || !(failure === "lateAnswer" ? ["publish"] : ["publish", "settle"]).includes(operation))
      return undefined
    const concerns = ({ about, name }: Sent) => name === operation && about.includes(queue)
    return Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => server.faults.arm(failure, concerns)),
        ({ end }) => Effect.sync(end)
      ),
      ({ happened }) => happened
    )
  }

/** Settings of the adapter and the server. */
export interface Setup {
  readonly server?: Options
  readonly options?: RabbitMqOptions.Options
}

const makeHarness = (
  server: Server,
  cut: () => void,
  { options = {} }: Setup,
  another: Harness.Service["another"],
  foreign: Array<string>
): Harness.Service => {
  const { queueType = "quorum" } = options
  const settings = Result.getOrThrow(RabbitMqOptions.decode(options))
  const { vhost } = server
  let queues = 0
  const unique = (base: string): string => `${base}-${++queues}`
  const declare = (queue: string, args: Readonly<Record<string, unknown>>) =>
    vhost.declareQueue(queue, { durable: true, arguments: args }, server)
  return Harness.Harness.of({
    name: `rabbitmq ${server.version} ${queueType}, simulated`,
    uniqueQueue: (base) =>
      Effect.sync(() => {
        const queue = unique(base)
        declare(queue, RabbitMqPlan.queue(queue, settings).arguments)
        return queue
      }),
    publishRaw: (queue, body, headers) =>
      Effect.sync(() => {
        const timestamp = Math.floor(server.host.now() / 1000)
        const properties = { deliveryMode: 2, timestamp }
        const table = Fields.encode(headers)
        vhost.publish({ exchange: "", routingKey: queue, properties, table, content: Buffer.from(body) })
      }),
    deadLetters: (queue) => Effect.sync(() => (vhost.queues.get(queue)?.waiting ?? []).map(toDelivery)),
    pending: (queue) =>
      Effect.sync(() => {
        const counts = vhost.queues.get(queue)?.counts
        const inFlight = options.management === undefined ? undefined : (counts?.unsettled ?? 0)
        return { ready: counts?.ready ?? 0, inFlight, delayed: undefined }
      }),
    cutConnections: Effect.sync(cut),
    restart: Effect.andThen(
      Effect.sync(() => server.restart(restarting)),
      Effect.sleep(restarting + 1)
    ),
    crash:
      another &&
      Effect.andThen(
        Effect.sync(() => server.restart(restarting, "kill")),
        Effect.delay(another, restarting + 1)
      ),
    // The simulated server has no disk that could lose what was not synced.
    powerCut: undefined,
    another,
    failNext: failNext(server),
    deleteQueue: (queue) => Effect.sync(() => vhost.deleteQueue(queue)),
    foreignQueue: (base) =>
      Effect.sync(() => {
        const queue = foreign.pop() ?? unique(base)
        declare(queue, { "x-queue-type": queueType === "classic" ? "quorum" : "classic" })
        return queue
      }),
    transactions: undefined,
    lateness: 20,
    settleTime: 10
  })
}

/** Makes the adapter's broker on a new server. */
export const layer = (setup: Setup = {}, adapter: Adapter["Service"] = { RabbitMqBroker }) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const server = new Server(yield* Host.make, setup.server)
      const { cut, driver } = makeDriver(server)
      // The first foreign queue is adopted, as the remedy says; any other is refused.
      const adopted = "foreign"
      const open = adapter.RabbitMqBroker.make({
        maxBodySize: 1024 * 1024,
        ...setup.options,
        queues: { ...setup.options?.queues, [adopted]: { assert: "passive" } },
        connectionName: "conformance"
      }).pipe(Effect.provideService(Driver, driver))
      const broker = yield* open
      const harness = makeHarness(server, cut, setup, open, [adopted])
      return Context.make(Broker.Broker, broker).pipe(
        Context.add(Harness.Harness, harness),
        Context.add(Adapter, adapter)
      )
    })
  )
