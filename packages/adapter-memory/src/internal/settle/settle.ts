/** Carries out settlements. */
import {
  type Broker,
  BrokerError,
  type Capabilities,
  type Delivery,
  Outgoing,
  type Settlement
} from "@requeue/core/adapter-kit"
import type { Delays } from "../delays.ts"
import { delivered, type Dispatch } from "../consume/dispatch.ts"
import type { Publish } from "../publish/publisher.ts"
import { type Consumer, Loan, type Store } from "../queues.ts"

export interface Settle {
  readonly settle: (
    consumer: Consumer,
    requests: ReadonlyArray<Broker.SettleRequest>
  ) => ReadonlyArray<Broker.SettleFailure>
  readonly extend: (
    consumer: Consumer,
    deliveries: ReadonlyArray<Delivery.Delivery>
  ) => ReadonlyArray<Broker.SettleFailure>
}

const failure = (
  operation: string,
  queue: string,
  reason: BrokerError.Reason,
  detail: string
): BrokerError.BrokerError => new BrokerError.BrokerError({ broker: "memory", operation, queue, reason, detail })

/** What the receipt stands for, unless it was settled before, lost, or is another subscription's. */
const borrowed = (consumer: Consumer, { receipt }: Delivery.Delivery): Loan | undefined =>
  receipt instanceof Loan && receipt.consumer === consumer && receipt.place !== -1 ? receipt : undefined

const notOurs = (operation: string, { queue }: Consumer): BrokerError.BrokerError =>
  failure(operation, queue.name, "LeaseLost", "the delivery was settled before, lost, or is another subscription's")

export const make = (env: {
  readonly store: Store
  readonly dispatch: Dispatch
  readonly publish: Publish
  readonly delays: Delays
  readonly capabilities: Capabilities.Capabilities
  /** Wall-clock milliseconds. */
  readonly now: () => number
  readonly fail: () => "ConnectionLost" | "LeaseLost" | undefined
}): Settle => {
  const { capabilities, delays, dispatch, publish, store } = env

  const remove = (loan: Loan): void => {
    const { queue } = loan.consumer
    dispatch.end(loan)
    queue.held--
    publish.admit(queue)
  }

  const retry = (
    loan: Loan,
    settlement: Extract<Settlement.Settlement, { _tag: "Retry" }>
  ): BrokerError.BrokerError | undefined => {
    const {
      consumer: { queue },
      stored
    } = loan
    const refusal = delays.refusal("settle", queue.name, settlement.delay)
    if (refusal !== undefined) return refusal
    if (capabilities.historyOnRetry) {
      const { history, notBefore } = Outgoing.retry(delivered(loan), settlement, queue.name, env.now()).metadata
      stored.metadata = { ...stored.metadata, history, notBefore }
    }
    dispatch.end(loan)
    store.enqueue(queue, stored, delays.round(settlement.delay))
    return undefined
  }

  const release = (loan: Loan, delay: number): void => {
    const {
      consumer: { queue },
      stored
    } = loan
    dispatch.end(loan)
    if (capabilities.uncountedRelease) stored.deliveries--
    if (delay === 0) queue.ready.putBack(stored)
    else store.postpone(queue, stored, delay)
  }

  const one = (loan: Loan, settlement: Settlement.Settlement): BrokerError.BrokerError | undefined => {
    const { queue } = loan.consumer
    const broken = env.fail()
    if (broken !== undefined) {
      if (broken === "LeaseLost") dispatch.lose(queue, [loan])
      return failure("settle", queue.name, broken, "the settlement was made to fail (failSettle)")
    }
    switch (settlement._tag) {
      case "Ack":
      case "Drop":
        remove(loan)
        return undefined
      case "Retry":
        return retry(loan, settlement)
      case "DeadLetter":
        publish.copy(Outgoing.deadLetter(delivered(loan), settlement, queue.name, env.now()))
        remove(loan)
        return undefined
      case "Release":
        release(loan, delays.release(settlement.delay))
        return undefined
    }
  }

  return {
    settle: (consumer, requests) => {
      const failures: Array<Broker.SettleFailure> = []
      // Nothing is delivered before all are settled, or a released message would come back to the one that released it.
      dispatch.quietly(consumer.queue, () => {
        for (const { delivery, settlement } of requests) {
          const loan = borrowed(consumer, delivery)
          const error = loan === undefined ? notOurs("settle", consumer) : one(loan, settlement)
          if (error !== undefined) failures.push({ delivery, error })
        }
      })
      return failures
    },
    extend: (consumer, deliveries) => {
      const failures: Array<Broker.SettleFailure> = []
      for (const delivery of deliveries) {
        const loan = borrowed(consumer, delivery)
        if (loan === undefined) failures.push({ delivery, error: notOurs("extend", consumer) })
        else dispatch.extend(loan)
      }
      return failures
    }
  }
}
