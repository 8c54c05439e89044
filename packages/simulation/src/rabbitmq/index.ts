/** The adapter for RabbitMQ on a simulated RabbitMQ. */
import { RabbitMqBroker, RabbitMqOptions, RabbitMqPlan } from "@requeue/adapter-rabbitmq"
import { Driver } from "@requeue/adapter-rabbitmq/driver"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as RabbitMqDriver from "../servers/rabbitmq/Driver.ts"
import type { Publication } from "../servers/rabbitmq/Message.ts"
import { Server } from "../servers/rabbitmq/Server.ts"
import type { Delivery } from "../History.ts"
import { queue as work, type RabbitMq, type Scenario } from "../Scenario.ts"
import * as Host from "../world/Host.ts"
import { type Machine, randomOf } from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import { keyOf } from "../world/Parcel.ts"
import type { World } from "../world/World.ts"
import * as Homes from "./Homes.ts"
import * as Network from "./Network.ts"
import * as Parcels from "./Parcels.ts"
import * as Refreshes from "./Refreshes.ts"
import * as Verdicts from "./Verdicts.ts"
import * as Witness from "./Witness.ts"

const usual: RabbitMq = { version: "4.3.6", queueType: "quorum", topology: "auto" }

/** The exchange that delivers delayed messages. */
const delivering = "requeue.v1.deliver"

/** The smallest limit that the adapter accepts, and one above all deliveries of the policies. */
const deliveryLimitOf = ({ versions }: Scenario): number =>
  Math.max(10, ...versions.map(({ maxDeliveries }) => 2 * maxDeliveries + 5))

const optionsOf = (
  scenario: Scenario,
  { adopted, policyTtl, queueType, topology }: RabbitMq
): RabbitMqOptions.Options => ({
  topology,
  queueType,
  deliveryLimit: deliveryLimitOf(scenario),
  // Only the management interface shows policies.
  ...(policyTtl === undefined ? {} : { management: "http://localhost:15672" }),
  ...(adopted === undefined ? {} : { queues: { [work]: { assert: "passive" as const } } })
})

/** The arguments with which operators have declared the queue. */
const argumentsOf = ({ versions }: Scenario, options: RabbitMqOptions.Options, { adopted, topology }: RabbitMq) => {
  if (adopted !== undefined)
    return { "x-queue-type": adopted, ...(adopted === "quorum" ? { "x-delivery-limit": 1000 } : {}) }
  const { arguments: planned } = RabbitMqPlan.queue(work, Result.getOrThrow(RabbitMqOptions.decode(options)))
  const delay = versions[0]?.backoff[0]
  if (topology !== "native" || delay === undefined) return planned
  // Only the consumer of a queue with native delays declares it otherwise, and producers would fail until then.
  const native = { "x-delayed-retry-type": "failed", "x-delayed-retry-min": delay, "x-delayed-retry-max": delay }
  return { ...planned, ...native }
}

/** A broker with one queue. */
export const make = (world: World): Model => {
  const { activity, draw, scenario } = world
  const setup = scenario.rabbitmq ?? usual
  const options = optionsOf(scenario, setup)
  const host = Host.ofServer(world)
  /** The deliveries of bytes: what the adapter makes of a delivery, such as a copy, shares its memory. */
  const numbers = new WeakMap<object, Delivery>()
  const purposes = new WeakMap<Publication, Witness.Purpose>()
  const purposeOf = (publication: Publication) => purposes.get(publication)

  const verdicts = Verdicts.make(world, (publication) => Homes.homeOf(server.vhost, publication))
  const server: Server = new Server(host, {
    version: setup.version,
    frameMax: setup.frameMax,
    onFact: Witness.make(world, host.now, () => server.vhost, purposeOf),
    verdict: (publication) => verdicts.atServer(purposeOf(publication)?.process, publication)
  })
  if (setup.policyTtl !== undefined)
    server.vhost.setPolicy("operator", "short", { pattern: "^requeue", definition: { "message-ttl": setup.policyTtl } })
  if (setup.deletedAt !== undefined)
    world.after(setup.deletedAt, () => {
      world.record({ _tag: "Fault", site: `cut ${delivering} 1`, kind: "cut" })
      server.vhost.exchanges.delete(delivering)
    })
  server.vhost.declareQueue(work, { durable: true, arguments: argumentsOf(scenario, options, setup) }, server)

  const driverOf = (machine: Machine) => {
    const { name } = machine
    return RabbitMqDriver.make(server, {
      host: Host.ofProcess(world, machine),
      network: Network.make(world, machine),
      name,
      arrived: ({ buffer }, { number }) => void numbers.set(buffer, number),
      publishes: (publication, { buffer }) => {
        verdicts.atDriver(publication)
        const isSend = activity.has("publish", name, keyOf(Parcels.from(publication)))
        const of = isSend ? undefined : numbers.get(buffer)
        purposes.set(publication, {
          process: name,
          of,
          replaces: of !== undefined && !activity.has("settle", name, of)
        })
      }
    }).driver
  }

  return {
    client: (machine) =>
      RabbitMqBroker.make(options).pipe(
        Effect.provideService(Driver, driverOf(machine)),
        Effect.provideService(Random.Random, randomOf(world, machine)),
        Effect.map((service) => ({
          ...service,
          subscribe: (request) => Refreshes.during(world, service.subscribe(request)),
          numberOf: ({ body }) => numbers.get(body.buffer)!
        }))
      ),
    publish: (queue, parcel, stored) => {
      server.vhost.publish(Parcels.toPublication(queue, parcel, host.now()))
      stored()
    },
    restart: (away) => server.restart(away, draw.chance("restart", 0.5) ? "orderly" : "kill"),
    throttle: (millis) => {
      server.alarm("memory")
      world.after(millis, () => server.alarm(undefined))
    }
  }
}
