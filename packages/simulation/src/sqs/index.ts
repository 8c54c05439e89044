/** The adapter for SQS on a simulated SQS. */
import { SqsBroker } from "@requeue/adapter-sqs"
import { Driver } from "@requeue/adapter-sqs/driver"
import type { Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Api from "../servers/sqs/Api.ts"
import * as SqsDriver from "../servers/sqs/Driver.ts"
import * as Network from "../servers/sqs/Network.ts"
import * as Receipts from "../servers/sqs/Receipts.ts"
import * as Server from "../servers/sqs/Server.ts"
import type { Scenario } from "../Scenario.ts"
import * as Host from "../world/Host.ts"
import type { Machine } from "../world/Machine.ts"
import type { Model } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import * as Faults from "./Faults.ts"
import * as Names from "./Names.ts"
import * as Parcels from "./Parcels.ts"
import * as Purposes from "./Purposes.ts"
import * as Witness from "./Witness.ts"

/** Minimum milliseconds of one way over the network. */
const latency = 0.1

/** In how many worlds an old receipt still works after the next receive: SQS promises neither. */
const chanceOfOld = 0.3

/** Milliseconds for which the counts of a queue may be out of date. */
const countsAge = 60_000

const numberOf = ({ receipt }: Delivery.Delivery): number =>
  Receipts.deliveryOf((receipt as { readonly handle: string }).handle) // as the adapter makes them

const numbered = (answer: { readonly Messages?: ReadonlyArray<object> }): object =>
  answer.Messages === undefined ? answer : { ...answer, Messages: answer.Messages.map(Parcels.numbered) }

/** The network as a process has it: it makes no calls and hears no answers once it is dead, and none while it stands still. */
const within = (
  { isAlive, perform }: Machine,
  network: Network.Network,
  purposes: Purposes.Purposes
): Network.Network => ({
  ...network,
  attempt: (call, client, timeout) =>
    new Promise((resolve) => {
      if (!isAlive()) return
      purposes.note(call)
      void network
        .attempt(call, client, timeout)
        .then((outcome) => perform(() => resolve(Result.map(outcome, numbered))))
    })
})

/** The most that SQS accepts. */
const largestCount = 1000

/**
 * As many receives as the version with the most deliveries needs. Versions that need more than their queue allows do not start. In a
 * FIFO queue, each return of a message costs the later ones of its group a receive.
 */
const maxReceiveCountOf = ({ fifo, versions }: Scenario): number =>
  fifo === undefined ? Math.max(...versions.map(({ maxDeliveries }) => 2 * maxDeliveries + 5)) : largestCount

/** A broker without queues. */
export const make = (world: World): Model => {
  const { scenario } = world
  const host = Host.ofServer(world)
  const purposes = Purposes.make(world)
  let busyUntil = 0
  const server = Server.make(host, {
    listen: Witness.make(world, host.now, purposes),
    happens: Faults.unkindness(world),
    refuses: Faults.ofEntries(world),
    countsAge,
    obeysOld: world.draw.chance("old receipts", chanceOfOld)
  })
  const network = Network.make(host, server, {
    latency,
    jitter: scenario.latency - latency,
    fault: Faults.ofCalls(world, () => world.now() < busyUntil)
  })
  const options = {
    url: `sqs://${server.settings.region}`,
    visibilityTimeout: scenario.lease,
    ...(scenario.fifo === undefined ? {} : { fifoRetry: scenario.fifo }),
    maxReceiveCount: maxReceiveCountOf(scenario)
  }
  return {
    client: (machine) =>
      SqsBroker.make(options).pipe(
        Effect.provideService(
          Driver,
          SqsDriver.make(Host.ofProcess(world, machine), within(machine, network, purposes), machine.name)
        ),
        Effect.map((service) => ({ ...service, numberOf }))
      ),
    publish: (queue, parcel, stored) => {
      const isFifo = scenario.fifo !== undefined
      const QueueName = Names.onSqs(queue, isFifo)
      const Attributes = isFifo ? { FifoQueue: "true" } : {}
      server.handle(Api.call("CreateQueue", { QueueName, Attributes }), () => {})
      server.handle(Api.call("SendMessageBatch", { QueueName, Entries: [Parcels.toEntry(parcel)] }), stored)
    },
    restart: network.restart,
    throttle: (millis) => {
      busyUntil = world.now() + millis
    },
    underWay: network.underWay
  }
}
