/** Carries out settlements on the channel that delivered. */
import { Broker, BrokerError, type Delivery, Direct, type Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Properties } from "../client.ts"
import { identityOf, originalOf, receiptOf, type Settler } from "../consume/receipt.ts"
import { isOfHeaders } from "../toBrokerError.ts"
import { Ack, type Command, isAck } from "./toCommand.ts"

const failure = (queue: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError.BrokerError =>
  failure(queue, "ConnectionLost", "the channel that delivered the message is closed; the server redelivers it")

/**
 * Returns the fate of a delivery whose channel is open and whose copy was not stored. The objects for a copy are
 * declared before it is published: when a declaration fails, nothing was published.
 */
export const fateOf = (error: BrokerError.BrokerError): Broker.Fate => {
  const fate = Broker.fateOf(error)
  return fate === "unknown" && error.operation === "declare" ? "transient" : fate
}

/** A message that must be stored before its original is acked. */
interface Copy {
  readonly message: Outgoing.Outgoing
  readonly original: Properties
}

/** The queue that delivered, and how to settle. */
interface Dependencies {
  readonly queue: string
  readonly toCommand: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  /** Publishes each copy separately; calls `confirmed` with a copy's index as soon as it is stored. */
  readonly publish: (
    copies: ReadonlyArray<Copy>,
    confirmed: (index: number) => void
  ) => Effect.Effect<ReadonlyArray<BrokerError.BrokerError | undefined>>
  /**
   * Remembers the name of an acked copy. A server that is killed forgets acks that were written and redelivers the
   * message, which is then acked again. Core cannot do this: it remembers only failed settlements. A retry by reject is
   * redelivered with the same name and must run; a retry by copy must be acked.
   */
  readonly settled: (name: string) => void
}

/** Reports a delivery that could not be settled. Default: it is `lost`. */
type Fail = (
  delivery: Delivery.Delivery,
  error: BrokerError.BrokerError,
  more?: Pick<Broker.SettleFailure, "fate" | "smaller">
) => void

/** Acks to write, by channel, and copies to publish. */
interface Remaining {
  readonly acks: Map<Settler, Array<Delivery.Delivery>>
  readonly copies: Array<readonly [Delivery.Delivery, Copy]>
}

type Requests = ReadonlyArray<Broker.SettleRequest>
type Failures = ReadonlyArray<Broker.SettleFailure>

/** Returns promises that must resolve before settlements are written: lowered credit is written first. */
const barriersOf = (requests: Requests): ReadonlyArray<Promise<void>> => {
  const barriers: Array<Promise<void>> = []
  let last: Settler | undefined
  for (const { delivery } of requests) {
    const { settler } = receiptOf(delivery)
    // Almost always all requests have one settler.
    const barrier = settler === last ? undefined : settler.barrier()
    if (barrier !== undefined) barriers.push(barrier)
    last = settler
  }
  return barriers
}

/** Claims the deliveries, and requeues those that only go back into their queue. */
const begin = (
  requests: Requests,
  { fail, queue, toCommand }: Pick<Dependencies, "queue" | "toCommand"> & { readonly fail: Fail }
): Remaining => {
  const remaining: Remaining = { acks: new Map(), copies: [] }
  for (const { delivery, settlement } of requests) {
    const receipt = receiptOf(delivery)
    const { settler } = receipt
    if (!settler.isOpen()) {
      fail(delivery, lost(queue))
      continue
    }
    if (!settler.claim(receipt)) {
      fail(delivery, failure(queue, "LeaseLost", "the delivery was settled before"))
      continue
    }
    const command = isAck(settlement) ? Ack : toCommand(delivery, settlement)
    switch (command._tag) {
      case "Ack": {
        const known = remaining.acks.get(settler)
        if (known === undefined) remaining.acks.set(settler, [delivery])
        else known.push(delivery)
        break
      }
      case "Copy":
        remaining.copies.push([delivery, { message: command.outgoing, original: originalOf(receipt) }])
        break
      default:
        if (!settler.requeue(receipt, command._tag)) fail(delivery, lost(queue))
    }
  }
  return remaining
}

/** Makes the `settle` of a subscription. */
export const make = ({ publish, queue, settled, toCommand }: Dependencies): Broker.Subscription["settle"] => {
  const remember = (delivery: Delivery.Delivery): void => {
    const name = identityOf(delivery)
    if (name !== undefined) settled(name)
  }

  /** Publishes copies, and acks the original of each as soon as the copy is stored. */
  const store = (copies: Remaining["copies"], fail: Fail): Effect.Effect<void> => {
    const published = publish(
      copies.map(([, copy]) => copy),
      (index) => {
        const [delivery] = copies[index]!
        const receipt = receiptOf(delivery)
        receipt.settler.ack([receipt])
        // Even if the ack cannot be written: the work is done.
        remember(delivery)
      }
    )
    return Effect.map(published, (errors) =>
      copies.forEach(([delivery], index) => {
        const [error, receipt] = [errors[index], receiptOf(delivery)]
        if (error === undefined) return
        if (!receipt.settler.isOpen()) return fail(delivery, lost(queue))
        receipt.settler.unclaim(receipt)
        fail(delivery, error, { fate: fateOf(error), smaller: isOfHeaders(error) })
      })
    )
  }

  const settleNow = (requests: Requests): Effect.Effect<Failures> =>
    Effect.suspend(() => {
      const { copies, fail, failures } = write(requests)
      return copies.length === 0 ? Effect.succeed(failures) : Effect.as(store(copies, fail), failures)
    })

  /** Writes all settlements that need no copy, and returns the rest. */
  const write = (requests: Requests) => {
    const failures: Array<Broker.SettleFailure> = []
    const fail: Fail = (delivery, error, more = { fate: "lost" }) => failures.push({ delivery, error, ...more })
    const { acks, copies } = begin(requests, { fail, queue, toCommand })
    // After the requeued ones: then one frame acks more.
    for (const [settler, deliveries] of acks) {
      if (settler.ack(deliveries.map(receiptOf))) deliveries.forEach(remember)
      else for (const delivery of deliveries) fail(delivery, lost(queue))
    }
    return { copies, fail, failures }
  }

  /** Settles requests that are all acks, as most are. Acks wait for no answer. */
  const acknowledge = (requests: Requests): Effect.Effect<Failures> =>
    Direct.make((onExit) => {
      const end = (): void => onExit(Exit.succeed(write(requests).failures))
      const barriers = barriersOf(requests)
      if (barriers.length === 0) end()
      else
        Promise.all(barriers)
          .then(end)
          .catch((defect: unknown) => onExit(Exit.die(defect)))
      return () => undefined
    })

  return (requests) =>
    requests.every(({ settlement }) => isAck(settlement))
      ? acknowledge(requests)
      : Effect.suspend(() => {
          const barriers = barriersOf(requests)
          return barriers.length === 0
            ? settleNow(requests)
            : Effect.andThen(
                Effect.promise(() => Promise.all(barriers)),
                settleNow(requests)
              )
        })
}
