/** The client of a broker with leases: long polls under the credit, and settlements in batches. */
import {
  BoundedMap,
  Broker,
  type BrokerError,
  type Capabilities,
  type Delivery,
  Metadata,
  type Outgoing,
  Settlement
} from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Calls } from "../world/Calls.ts"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { World } from "../world/World.ts"
import * as Polls from "./Polls.ts"
import * as Requests from "./Requests.ts"
import { limits, type Received, type Sending, type Server } from "./Server.ts"
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
  peek: false
})

/** Milliseconds that a poll waits for messages. */
const wait = { poll: 20_000, look: 1000 }

/** Milliseconds for which messages that an operator receives are hidden. */
const lookLease = 30_000

/** Copies that wait for their removal, and are remembered at least. */
const copiedLimit = 1000

interface Dependencies {
  readonly machine: Machine
  readonly requests: Requests.Requests
  readonly lease: number
  readonly toSending: (outgoing: Outgoing.Outgoing, of: number | undefined) => Sending
}

const decode = (message: Received, machine: Machine, receipt: unknown): Delivery.Delivery => {
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

/** The deliveries that are in flight. Those whose lease ends unnoticed are given up. */
const inFlight = (machine: Machine, lease: number, onEnd: () => void) => {
  const deliveries = new Set<Delivery.Delivery>()
  let isWatching = false
  const watch = (): void => {
    if (isWatching || deliveries.size === 0) return
    isWatching = true
    machine.after(lease / 3, () => {
      isWatching = false
      const now = machine.monotonic()
      for (const each of [...deliveries]) if (Settling.isExpired(Settling.receiptOf(each), now)) ended(each)
      watch()
    })
  }
  const ended = (delivery: Delivery.Delivery): void => {
    if (deliveries.delete(delivery)) onEnd()
  }
  return {
    all: (): ReadonlySet<Delivery.Delivery> => deliveries,
    began: (delivery: Delivery.Delivery): void => {
      deliveries.add(delivery)
      watch()
    },
    ended
  }
}

/** Renews leases, and answers those that are lost. Of another failure the next call will tell. */
const extending =
  ({ lease, machine, requests }: Dependencies, ended: (delivery: Delivery.Delivery) => void) =>
  (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.callback((resume) => {
      const askedAt = machine.monotonic()
      const failures: Array<Broker.SettleFailure> = []
      let left = deliveries.length
      const lost = (delivery: Delivery.Delivery, error: BrokerError.BrokerError): void => {
        ended(delivery)
        failures.push({ delivery, error, fate: "gone" })
      }
      const end = (): void => {
        if (--left === 0) resume(Effect.succeed(failures))
      }
      const entries = deliveries.flatMap((delivery) => {
        const receipt = Settling.receiptOf(delivery)
        const seconds = Math.floor(Math.min(lease, Settling.longest - (askedAt - receipt.receivedAt)) / 1000)
        const until = askedAt + seconds * 1000
        if (Settling.isExpired(receipt, askedAt)) {
          lost(delivery, Requests.errorOf("extend", "LeaseLost", "its lease had ended"))
        }
        if (Settling.isExpired(receipt, askedAt) || until <= receipt.leaseEnds) {
          end()
          return []
        }
        const then = (error: BrokerError.BrokerError | undefined): void => {
          if (error === undefined) receipt.leaseEnds = until
          else if (error.reason === "LeaseLost") lost(delivery, error)
          else if (Broker.fateOf(error) === "unknown") receipt.isUncertain = true
          end()
        }
        return [{ asked: { handle: receipt.number, seconds, isBack: false }, then }]
      })
      if (deliveries.length === 0) return resume(Effect.succeed([]))
      requests.hide(entries)
    })

const subscribing =
  (dependencies: Dependencies): Broker.Service["subscribe"] =>
  ({ deadLetterQueues, onDelivery, queue, retry }) => {
    const { lease, machine, requests, toSending } = dependencies
    const { maxDeliveries } = retry
    const copied = BoundedMap.make<true>(copiedLimit)
    const deliveries = inFlight(machine, lease, () => polls.refresh())
    const late: Array<Delivery.Delivery> = []
    let isClosed = false

    const receive = (message: Received): void => {
      const { handle, messageId } = message
      if (copied.has(messageId)) return requests.remove([{ asked: handle, then: () => {} }])
      const receivedAt = machine.monotonic()
      const receipt: Settling.Receipt = {
        number: handle,
        messageId,
        receivedAt,
        leaseEnds: receivedAt + lease,
        isUncertain: false,
        isCopied: false,
        isSettling: false
      }
      const delivery = decode(message, machine, receipt)
      deliveries.began(delivery)
      if (isClosed) late.push(delivery)
      else onDelivery(delivery)
    }
    const polls = Polls.make({
      machine,
      inFlight: () => deliveries.all().size,
      poll: (count, done) =>
        requests.receive({ queue, count, lease, wait: wait.poll }, (result) => {
          if (Exit.isSuccess(result)) for (const message of result.value) receive(message)
          done(Exit.isSuccess(result) ? result.value.length : undefined)
        })
    })
    const settle = Settling.make({
      queue,
      maxDeliveries: Number(maxDeliveries),
      requests,
      toSending,
      copied,
      clock: machine,
      onEnd: deliveries.ended
    })
    const release = (some: ReadonlyArray<Delivery.Delivery>) =>
      settle(some.map((delivery) => ({ delivery, settlement: Settlement.Release() })))

    const close = Effect.gen(function* () {
      isClosed = true
      const ended = Effect.callback<void>((resume) => polls.close(() => resume(Effect.void)))
      yield* release([...deliveries.all()].filter((delivery) => !Settling.receiptOf(delivery).isSettling))
      yield* ended
      yield* release(late)
    })
    const [to] = deadLetterQueues
    const redrive = to === undefined ? undefined : { to, maxReceiveCount: Math.min(1000, 2 * maxDeliveries + 5) }
    const subscription: Broker.Subscription = {
      credit: polls.credit,
      settle,
      extend: extending(dependencies, deliveries.ended),
      identify: (delivery) => Settling.receiptOf(delivery).messageId
    }
    return Effect.acquireRelease(Effect.as(requests.declare(queue, redrive), subscription), () => close)
  }

const adminOf = (machine: Machine, requests: Requests.Requests): Broker.Admin => {
  const receive = (queue: string, count: number) =>
    Effect.callback<ReadonlyArray<Received>, BrokerError.BrokerError>((resume) =>
      requests.receive({ queue, count: Math.min(count, Requests.batch), lease: lookLease, wait: wait.look }, resume)
    )
  const each = <A>(some: ReadonlyArray<A>, ask: (entries: ReadonlyArray<Requests.Entry<A>>) => void) =>
    Effect.callback<ReadonlyArray<BrokerError.BrokerError>>((resume) => {
      const errors: Array<BrokerError.BrokerError> = []
      let left = some.length
      const then = (error: BrokerError.BrokerError | undefined): void => {
        if (error !== undefined) errors.push(error)
        if (--left === 0) resume(Effect.succeed(errors))
      }
      ask(some.map((asked) => ({ asked, then })))
    })
  return {
    counts: requests.counts,
    /** Receives until nothing more comes, and gives all of it back. */
    peek: Effect.fnUntraced(function* (queue, limit) {
      const seen: Array<Received> = []
      while (seen.length < limit) {
        const some = yield* receive(queue, limit - seen.length)
        if (some.length === 0) break
        seen.push(...some)
      }
      if (seen.length > 0) {
        yield* each(
          seen.map(({ handle }) => ({ handle, seconds: 0, isBack: true })),
          requests.hide
        )
      }
      return seen.map((message) => decode(message, machine, { number: message.handle }))
    }),
    /** Receives and removes until nothing more comes. */
    purge: Effect.fnUntraced(function* (queue) {
      for (let count = 0; ; ) {
        const some = yield* receive(queue, Requests.batch)
        if (some.length === 0) return count
        const errors = yield* each(
          some.map(({ handle }) => handle),
          (entries) => requests.remove(entries, "purged")
        )
        if (errors[0] !== undefined) return yield* errors[0]
        count += some.length
      }
    })
  }
}

/** The client of one process. */
export const make = (world: World, machine: Machine, calls: Calls, server: Server): Broker.Service => {
  const { lease } = world.scenario
  const requests = Requests.make(machine, calls, server)
  const toSending = (outgoing: Outgoing.Outgoing, of: number | undefined): Sending => ({
    parcel: Parcels.fromOutgoing(world, outgoing),
    seconds: Math.min(Math.ceil(outgoing.delay / 1000), limits.delay),
    of
  })
  const publishOne = (outgoing: Outgoing.Outgoing): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.callback((resume) =>
      requests.send(outgoing.queue, [
        {
          asked: toSending(outgoing, undefined),
          then: (error) => resume(error === undefined ? Effect.void : Effect.fail(error))
        }
      ])
    )
  return {
    capabilities: capabilitiesOf(lease),
    connection: requests.connection,
    publish: (messages) => Effect.forEach(messages, publishOne, { concurrency: "unbounded", discard: true }),
    subscribe: subscribing({ machine, requests, lease, toSending }),
    admin: adminOf(machine, requests)
  }
}
