/** The client of daemons that push: a connection to each for publishes, and one to each for every subscription. */
import { type Broker, type BrokerError, type Capabilities, Connection, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import type { Client } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import * as Admin from "./Admin.ts"
import * as Consumer from "./Consumer.ts"
import * as Link from "./Link.ts"
import * as Memory from "./Memory.ts"
import type { Settings } from "./Protocol.ts"
import * as Publisher from "./Publisher.ts"
import type { Server } from "./Server.ts"
import * as Session from "./Session.ts"
import * as Settling from "./Settling.ts"

/** The daemons of a world, and how clients use them. */
export interface Daemons {
  readonly servers: ReadonlyArray<Server>
  readonly settings: Settings
  /** Whether every retry is a copy, which carries its time and its error. */
  readonly isExact: boolean
}

const capabilitiesOf = ({ isExact, settings }: Daemons): Capabilities.Capabilities => ({
  broker: "lossy",
  retryDelay: { native: settings.cap, beyond: "copies, one after the other" },
  sendDelay: { native: settings.cap, beyond: "copies, one after the other, while a consumer of the queue runs" },
  delayResolution: 100,
  durableDelays: false,
  durableMessages: false,
  uncountedRelease: false,
  headers: false,
  historyOnRetry: isExact,
  maxBodySize: 100_000,
  connectionBound: true,
  lease: { duration: settings.lease, max: settings.longestLease },
  ordered: false,
  settleBatch: 1,
  settleWait: 0,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: false,
  uncountedBrowse: false
})

/** The client of one process. */
export const make = (world: World, machine: Machine, daemons: Daemons): Client => {
  const { isExact, settings } = daemons
  // Every process shuffles the order in which nsqlookupd names the daemons.
  const isMixed = world.draw.chance(`${machine.name} order`, 0.5)
  const servers = isMixed ? daemons.servers.toReversed() : daemons.servers
  const consumers = new Set<Consumer.Consumer>()

  const isUp = (): boolean => publisher.isUp() && [...consumers].every((each) => each.isUp())
  const onChange = (): void => tracker.set(isUp() ? "up" : "down")
  const publisher = Publisher.make(world, machine, servers, settings, onChange)
  const tracker = Connection.track(isUp() ? "up" : "down", machine.wallClock)

  const awaiting = (wait: (then: Publisher.Then) => void): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.callback((resume) => wait((error) => resume(error === undefined ? Effect.void : Effect.fail(error))))

  const consume = ({ onDelivery, onReconnect, queue }: Broker.SubscribeOptions, memory: Memory.Memory) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const consumer = Consumer.open(machine, servers, settings, {
          queue,
          onDelivery: (delivery) => {
            const receipt = Session.receiptOf(delivery)
            if (memory.isFinished(receipt)) Session.finish(receipt)
            else onDelivery(delivery)
          },
          onReconnect,
          takeDue: memory.takeDue,
          onChange
        })
        consumers.add(consumer)
        return consumer
      }),
      (consumer) =>
        Effect.callback<void>((resume) => {
          consumers.delete(consumer)
          consumer.close(() => resume(Effect.void))
        })
    )

  const subscribe: Broker.Service["subscribe"] = (options) =>
    Effect.gen(function* () {
      const { queue } = options
      yield* awaiting(publisher.ready)
      const memory = Memory.make(queue)
      const { credit, isUp: isConnected } = yield* consume(options, memory)
      if (!isConnected()) return yield* Link.errorOf("subscribe", "ConnectionFailed", "no daemon is up")
      const settling = Settling.make({ machine, queue, publisher, memory, cap: settings.cap, isExact })
      const identify = (delivery: Delivery.Delivery) => memory.nameOf(Session.receiptOf(delivery))
      return { credit, ...settling, identify, copiesRetries: isExact }
    })

  return {
    capabilities: capabilitiesOf(daemons),
    connection: tracker.current,
    publish: (messages) =>
      Effect.forEach(messages, (message) => awaiting((then) => publisher.publish(message, undefined, then)), {
        concurrency: "unbounded",
        discard: true
      }),
    subscribe,
    admin: Admin.make(machine, servers, settings)
  }
}
