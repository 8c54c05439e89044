/** Settlements. */
import {
  Broker,
  BrokerError,
  type Capabilities,
  type Delivery,
  Direct,
  Outgoing,
  Settlement,
  ShortList
} from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Dispatch } from "../consume/dispatch.ts"
import { deliveryOf } from "../consume/toDelivery.ts"
import type { Delays } from "../delays.ts"
import type { Publisher } from "../publish/publisher.ts"
import { type Consumer, type Queues, Receipt } from "../queues.ts"
import * as Transaction from "../transaction.ts"

/** Returns the settling functions of one subscription. */
export type Settle = (consumer: Consumer) => Pick<Broker.Subscription, "settle" | "extend" | "ackWithin">

interface Dependencies {
  readonly queues: Queues
  readonly dispatch: Dispatch
  readonly publisher: Publisher
  readonly delays: Delays
  readonly capabilities: Capabilities.Capabilities
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Returns the reason to fail the next settlement with; `undefined` to carry it out. Default: carry out all. */
  readonly fail: (() => "ConnectionLost" | "LeaseLost" | undefined) | undefined
}

export const failure = (
  operation: string,
  queue: string,
  reason: BrokerError.Reason,
  detail: string
): BrokerError.BrokerError => new BrokerError.BrokerError({ broker: "memory", operation, queue, reason, detail })

/** Returns the receipt of a delivery; `undefined` if it was settled or lost, or belongs to another subscription. */
export const receiptOf = (consumer: Consumer, { receipt }: Delivery.Delivery): Receipt | undefined =>
  receipt instanceof Receipt && receipt.consumer === consumer && receipt.place !== -1 ? receipt : undefined

/** Returns the failure for a delivery that is not held. */
export const gone = (operation: string, queue: string, delivery: Delivery.Delivery): Broker.SettleFailure => {
  const detail = "the delivery was already settled or lost, or belongs to another subscription"
  return { delivery, error: failure(operation, queue, "LeaseLost", detail), fate: "lost" }
}

/** Carries out one settlement. Returns its error; `undefined` on success. */
const carryOut = ({ capabilities, delays, dispatch, now, publisher, queues }: Dependencies) => {
  const remove = (receipt: Receipt): void => {
    const { queue } = receipt.consumer
    dispatch.end(receipt)
    queue.held--
    if (receipt.message.place !== undefined) queues.makeWay(receipt.message)
    publisher.admit?.(queue)
  }

  const retry = (
    receipt: Receipt,
    settlement: Extract<Settlement.Settlement, { _tag: "Retry" }>
  ): BrokerError.BrokerError | undefined => {
    const { message } = receipt
    const { queue } = receipt.consumer
    const refusal = delays.refusal("settle", queue.name, settlement.delay)
    if (refusal !== undefined) return refusal
    if (capabilities.historyOnRetry) {
      const { history, notBefore } = Outgoing.retry(deliveryOf(receipt), settlement, queue.name, now()).metadata
      message.metadata = { ...message.metadata, history, notBefore }
    }
    dispatch.end(receipt)
    queues.enqueue(queue, message, delays.round(settlement.delay))
    return undefined
  }

  const release = (receipt: Receipt, delay: number): void => {
    const { message } = receipt
    const { queue } = receipt.consumer
    dispatch.end(receipt)
    if (capabilities.uncountedRelease) message.deliveries--
    if (delay === 0) queue.ready.putBack(message)
    else queues.postpone(queue, message, delay)
  }

  return (receipt: Receipt, settlement: Settlement.Settlement): BrokerError.BrokerError | undefined => {
    switch (settlement._tag) {
      case "Ack":
      case "Drop":
        remove(receipt)
        return undefined
      case "Retry":
        return retry(receipt, settlement)
      case "DeadLetter":
        publisher.copy(Outgoing.deadLetter(deliveryOf(receipt), settlement, receipt.consumer.queue.name, now()))
        remove(receipt)
        return undefined
      case "Release":
        release(receipt, delays.release(settlement.delay))
        return undefined
    }
  }
}

export const make = (env: Dependencies): Settle => {
  const { capabilities, dispatch, fail } = env
  const settleOne = carryOut(env)

  /** Imitates a failed settlement if the fault `failSettle` is due. */
  const imitated = (receipt: Receipt, nextReason: NonNullable<typeof fail>): BrokerError.BrokerError | undefined => {
    const reason = nextReason()
    if (reason === undefined) return undefined
    const { queue } = receipt.consumer
    if (reason === "LeaseLost") {
      // Without leases, a delivery is lost with its connection, and the consumer is notified before the redelivery.
      if (capabilities.lease === undefined) receipt.consumer.options.onReconnect((each) => each.receipt === receipt)
      dispatch.lose(queue, [receipt])
    }
    return failure("settle", queue.name, reason, "the fault failSettle made the settlement fail")
  }

  const settleAll = (consumer: Consumer, requests: ReadonlyArray<Broker.SettleRequest>) => {
    const failures = ShortList.of<Broker.SettleFailure>()
    for (const { delivery, settlement } of requests) {
      const receipt = receiptOf(consumer, delivery)
      if (receipt === undefined) {
        failures.push(gone("settle", consumer.queue.name, delivery))
        continue
      }
      const error = (fail && imitated(receipt, fail)) ?? settleOne(receipt, settlement)
      if (error !== undefined) failures.push({ delivery, error, fate: Broker.fateOf(error) })
    }
    return failures
  }

  const extendAll = (consumer: Consumer, deliveries: ReadonlyArray<Delivery.Delivery>) => {
    const failures: Array<Broker.SettleFailure> = []
    for (const delivery of deliveries) {
      const receipt = receiptOf(consumer, delivery)
      if (receipt === undefined) failures.push(gone("extend", consumer.queue.name, delivery))
      else dispatch.extend(receipt)
    }
    return failures
  }

  const ackWithin = (consumer: Consumer, transaction: unknown, deliveries: ReadonlyArray<Delivery.Delivery>) => {
    const changes = Transaction.open(transaction)
    if (!(changes instanceof Transaction.Changes)) return Effect.fail(changes)
    const { queue } = consumer
    const refusal = () =>
      deliveries.every((delivery) => receiptOf(consumer, delivery) !== undefined)
        ? undefined
        : gone("within", queue.name, deliveries[0]!).error
    const lost = refusal()
    if (lost !== undefined) return Effect.fail(lost)
    const ack = () => {
      for (const delivery of deliveries) settleOne(receiptOf(consumer, delivery)!, Settlement.Ack)
    }
    changes.add({ refusal, make: () => dispatch.quietly(queue, ack) })
    return Effect.succeed([])
  }

  return (consumer) => ({
    ackWithin: capabilities.transactions
      ? (transaction, deliveries) => Effect.suspend(() => ackWithin(consumer, transaction, deliveries))
      : undefined,
    settle: (requests) =>
      Direct.make((onExit) => {
        // A returned message is redelivered only after its consumer has the answer for this delivery.
        dispatch.quietly(consumer.queue, () => onExit(Exit.succeed(settleAll(consumer, requests))))
        return () => undefined
      }),
    extend: (deliveries) => Effect.sync(() => extendAll(consumer, deliveries))
  })
}
