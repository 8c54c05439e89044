/** The client of a broker with leases: long polls under the credit, and settlements in batches. */
import {
  BoundedMap,
  type Broker,
  type BrokerError,
  type Capabilities,
  type Delivery,
  type Metadata,
  type Outgoing,
  Settlement
} from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Calls } from "../world/Calls.ts"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { Client } from "../world/Model.ts"
import type { World } from "../world/World.ts"
import * as Deliveries from "./Deliveries.ts"
import * as Polls from "./Polls.ts"
import * as Requests from "./Requests.ts"
import type { Received } from "./Leases.ts"
import { limits, type Sending, type Server } from "./Server.ts"
import * as Settling from "./Settling.ts"

/** How delays beyond the server's are kept. */
const beyond = "delayed copies, one every 15 minutes, while a consumer runs"

const capabilitiesOf = (lease: number): Capabilities.Capabilities => ({
  broker: "lease",
  retryDelay: { native: Settling.longest, beyond },
  sendDelay: { native: limits.delay * 1000, beyond },
  delayResolution: 1000,
  durableDelays: true,
  durableMessages: true,
  uncountedRelease: false,
  headers: true,
  historyOnRetry: false,
  maxBodySize: 100_000,
  connectionBound: false,
  lease: { duration: lease, max: Settling.longest },
  ordered: false,
  settleBatch: Requests.batch,
  settleWait: 20,
  counts: { ready: true, inFlight: true, delayed: true },
  exactCounts: false,
  uncountedBrowse: false
})

/** Milliseconds that a receive waits for messages: of a consumer, and of a purge. */
const waits = { poll: 20_000, purge: 1000 }

/** Milliseconds for which messages that a purge receives are hidden. */
const purgeLease = 30_000

/** Minimum number of messages remembered that only wait for their removal. */
const copiedLimit = 1000

interface Dependencies {
  readonly machine: Machine
  readonly requests: Requests.Requests
  /** Milliseconds. */
  readonly lease: number
  readonly toSending: (outgoing: Outgoing.Outgoing, of: number | undefined) => Sending
}

const toDelivery = (message: Received, machine: Machine, receipt: unknown): Delivery.Delivery => {
  const { count, handle, messageId, movedFrom, parcel, sentAt } = message
  const told = { delivery: handle, count, receipt, sentAt, id: messageId }
  const { metadata, redelivered: _, ...delivery } = Parcels.toDelivery(parcel, machine, told)
  return { ...delivery, metadata: movedFrom === undefined ? metadata : moved(message, metadata, movedFrom) }
}

/** The metadata of what the server itself has moved to the dead letters. */
const moved = ({ count, sentAt }: Received, metadata: Metadata.Metadata, queue: string): Metadata.Metadata => ({
  ...metadata,
  deadLetter: metadata.deadLetter ?? {
    queue,
    attempts: count,
    reason: "retries-exhausted",
    at: sentAt,
    error: { name: "NativeRedrive", message: "received more often than its redrive policy allows" }
  }
})

const subscribing =
  ({ lease, machine, requests, toSending }: Dependencies): Broker.Service["subscribe"] =>
  ({ deadLetterQueues, onDelivery, queue, retry: { maxDeliveries } }) => {
    const copied = BoundedMap.make<true>(copiedLimit)
    const deliveries = Deliveries.make({ machine, requests, lease, onEnd: () => polls.refresh() })
    const settle = Settling.make({
      queue,
      maxDeliveries,
      machine,
      requests,
      toSending,
      copied,
      onEnd: deliveries.ended
    })
    const late: Array<Delivery.Delivery> = []
    let isClosed = false

    const receive = (message: Received): void => {
      const { handle, messageId } = message
      // A handler that ran at once, for an earlier message, may have killed the process.
      if (!machine.isAlive()) return
      if (copied.has(messageId)) return void machine.run(requests.remove([handle]))
      const receivedAt = machine.monotonic()
      const delivery = toDelivery(message, machine, {
        number: handle,
        messageId,
        receivedAt,
        leaseEnds: receivedAt + lease,
        isUncertain: false,
        isSettling: false
      } satisfies Settling.Receipt)
      deliveries.began(delivery)
      if (isClosed) late.push(delivery)
      else onDelivery(delivery)
    }
    const polls = Polls.make({
      machine,
      inFlight: deliveries.size,
      poll: (count, done) =>
        machine.run(requests.receive({ queue, count, lease, wait: waits.poll })).addObserver((exit) => {
          if (Exit.isSuccess(exit)) for (const message of exit.value) receive(message)
          done(Exit.isSuccess(exit) ? exit.value.length : undefined)
        })
    })

    /**
     * Handlers may have begun unsettled messages, so their attempt counts. Messages of polls in flight have reached no handler.
     */
    const close = Effect.gen(function* () {
      isClosed = true
      const begun = deliveries.unsettled().map((delivery) => Settling.receiptOf(delivery).number)
      yield* requests.hide(begun.map((handle) => ({ handle, seconds: 0, isBack: true })))
      yield* Effect.callback<void>((resume) => polls.close(() => resume(Effect.void)))
      yield* settle(late.map((delivery) => ({ delivery, settlement: Settlement.Release() })))
    })
    const [to] = deadLetterQueues
    const redrive = to === undefined ? undefined : { to, maxReceiveCount: Math.min(1000, 2 * maxDeliveries + 5) }
    const subscription: Broker.Subscription = {
      credit: polls.credit,
      settle,
      extend: deliveries.extend,
      identify: (delivery) => Settling.receiptOf(delivery).messageId
    }
    return Effect.acquireRelease(Effect.as(requests.declare(queue, redrive), subscription), () => close)
  }

/** The first error among results. */
const firstOf = (results: Requests.Results): Effect.Effect<void, BrokerError.BrokerError> => {
  const error = results.find((each) => each !== undefined)
  return error === undefined ? Effect.void : Effect.fail(error)
}

const adminOf = ({ counts, receive, remove }: Requests.Requests): Client["admin"] => ({
  counts,
  /** Receives and removes until the queue is empty. */
  purge: Effect.fnUntraced(function* (queue) {
    for (let count = 0; ; ) {
      const some = yield* receive({ queue, count: Requests.batch, lease: purgeLease, wait: waits.purge })
      if (some.length === 0) return count
      const handles = some.map(({ handle }) => handle)
      yield* Effect.flatMap(remove(handles, "purged"), firstOf)
      count += some.length
    }
  })
})

/** The client of one process. */
export const make = (world: World, machine: Machine, calls: Calls, server: Server): Client => {
  const { lease } = world.scenario
  const requests = Requests.make(machine, calls, server)
  const toSending = (outgoing: Outgoing.Outgoing, of: number | undefined): Sending => ({
    parcel: Parcels.fromOutgoing(world, outgoing),
    seconds: Math.min(Math.ceil(outgoing.delay / 1000), limits.delay),
    of
  })
  return {
    capabilities: capabilitiesOf(lease),
    connection: requests.connection,
    publish: (messages) =>
      Effect.forEach(
        Map.groupBy(messages, ({ queue }) => queue),
        ([queue, some]) =>
          Effect.flatMap(
            requests.send(
              queue,
              some.map((each) => toSending(each, undefined))
            ),
            firstOf
          ),
        { concurrency: "unbounded", discard: true }
      ),
    subscribe: subscribing({ machine, requests, lease, toSending }),
    admin: adminOf(requests)
  }
}
