/** The client of daemons that push: a connection to each for publishes, and one to each for every subscription. */
import { type Broker, BrokerError, type Capabilities, Connection, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import type { World } from "../world/World.ts"
import * as Admin from "./Admin.ts"
import * as Consumer from "./Consumer.ts"
import * as Link from "./Link.ts"
import * as Publisher from "./Publisher.ts"
import type { Server, Settings } from "./Server.ts"
import * as Settling from "./Settling.ts"

/** What a process is connected to. */
export interface Daemons {
  readonly servers: ReadonlyArray<Server>
  readonly settings: Settings
  /** Whether every retry is a copy, so that it says when it is due, and what failed. */
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
  peek: false
})

/** The client of one process. */
export const make = (world: World, machine: Machine, daemons: Daemons): Broker.Service => {
  const { isExact, settings } = daemons
  // The order in which nsqlookupd names the daemons is mixed anew by every process.
  const isMixed = world.draw.chance(`${machine.name} order`, 0.5)
  const servers = isMixed ? daemons.servers.toReversed() : daemons.servers
  const consumers = new Set<Consumer.Consumer>()

  const isUp = (): boolean => publisher.isUp() && [...consumers].every((each) => each.isUp())
  const onChange = (): void => tracker.set(isUp() ? "up" : "down")
  const publisher = Publisher.make(world, machine, servers, settings, onChange)
  const tracker = Connection.track(isUp() ? "up" : "down", machine.wallClock)

  const awaiting = (wait: (then: Publisher.Then) => void): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.callback((resume) => wait((error) => resume(error === undefined ? Effect.void : Effect.fail(error))))

  const subscribe: Broker.Service["subscribe"] = ({ onDelivery, onReconnect, queue }) => {
    const memory: Settling.Memory = { due: new Map(), finished: new Set() }
    const receive = (delivery: Delivery.Delivery): void => {
      const receipt = Consumer.receiptOf(delivery)
      if (!memory.finished.has(Settling.nameOf(receipt, queue))) return onDelivery(delivery)
      if (consumer.take(receipt)) consumer.answer(receipt, { _tag: "Fin", id: receipt.id, of: receipt.number })
    }
    const takeDue = (receipt: Consumer.Receipt): number | undefined => {
      const name = Settling.nameOf(receipt, queue)
      const due = memory.due.get(name)
      memory.due.delete(name)
      return due
    }
    let consumer: Consumer.Consumer
    const opened = Effect.acquireRelease(
      Effect.sync(() => {
        consumer = Consumer.open(machine, servers, settings, {
          queue,
          onDelivery: receive,
          onReconnect,
          takeDue,
          onChange
        })
        consumers.add(consumer)
        return consumer
      }),
      (open) =>
        Effect.callback<void>((resume) => {
          consumers.delete(open)
          open.close(() => resume(Effect.void))
        })
    )
    return Effect.andThen(
      awaiting(publisher.ready),
      Effect.flatMap(opened, (open) => {
        if (!open.isUp()) return Effect.fail(Link.errorOf("subscribe", "ConnectionFailed", "no daemon is up"))
        const { cap } = settings
        const settling = Settling.make({ machine, queue, consumer: open, publisher, memory, cap, isExact })
        const identify = (delivery: Delivery.Delivery) => Settling.nameOf(Consumer.receiptOf(delivery), queue)
        return Effect.succeed({ credit: open.credit, ...settling, identify })
      })
    )
  }

  return {
    capabilities: capabilitiesOf(daemons),
    connection: tracker.current,
    publish: (messages) =>
      Effect.forEach(
        messages,
        (message) => awaiting((then) => publisher.publish(message, undefined, undefined, then)),
        { concurrency: "unbounded", discard: true }
      ),
    subscribe,
    admin: Admin.make(machine, servers, settings)
  }
}
