/** Settles deliveries: messages are removed, hidden, or copied and then removed. */
import { type BoundedMap, Broker, type BrokerError, type Delivery, Outgoing } from "@requeue/core/adapter-kit"
import type { Settlement } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { errorOf, type Requests } from "./Requests.ts"
import { limits, type Sending } from "./Server.ts"

/** The receipt of a delivery. */
export interface Receipt {
  readonly number: number
  readonly messageId: string
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds: until then it is ours. */
  leaseEnds: number
  /** Whether a call that hides it had no answer, and may still take effect. */
  isUncertain: boolean
  /** Whether its copy is stored, so that only its removal is left. */
  isCopied: boolean
  /** Whether it is settled, or is being settled. */
  isSettling: boolean
}

/** The receipt of a delivery of this client. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // This client makes all of them.

/** Milliseconds from its receipt for which a message can be hidden, less what the calls take. */
export const longest = limits.hidden * 1000 - 10_000

/** Whether its lease has ended. `now` is in monotonic milliseconds. */
export const isExpired = ({ leaseEnds }: Receipt, now: number): boolean => now >= leaseEnds

type Command =
  | { readonly _tag: "Remove" }
  | { readonly _tag: "Hide"; readonly seconds: number }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }

interface Situation {
  readonly queue: string
  readonly maxDeliveries: number
  /** Milliseconds since the receipt. */
  readonly elapsed: number
  /** Milliseconds since the epoch. */
  readonly now: number
}

const commandOf = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  { elapsed, maxDeliveries, now, queue }: Situation
): Command => {
  const { isCopied, isUncertain } = receiptOf(delivery)
  if (isCopied) return { _tag: "Remove" }
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Remove" }
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Retry": {
      const seconds = Math.ceil(settlement.delay / 1000)
      if (!isUncertain && seconds * 1000 + elapsed <= longest) return { _tag: "Hide", seconds }
      return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
    }
    case "Release":
      // The server counts every receive: what waits, or may be received only once more, waits as a copy.
      return settlement.delay === 0 && delivery.attempts < maxDeliveries
        ? { _tag: "Hide", seconds: 0 }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  }
}

/** What is told when a request has ended. */
type Done = (error: BrokerError.BrokerError | undefined) => void

/** What settling depends on. */
export interface Dependencies {
  readonly queue: string
  readonly maxDeliveries: number
  readonly requests: Requests
  readonly toSending: (outgoing: Outgoing.Outgoing, of: number | undefined) => Sending
  /** The copies that only wait for their removal, by the server's name. */
  readonly copied: BoundedMap.BoundedMap<true>
  /** Monotonic milliseconds, and milliseconds since the epoch. */
  readonly clock: { readonly monotonic: () => number; readonly wallClock: () => number }
  /** Called when a delivery is ours no more. */
  readonly onEnd: (delivery: Delivery.Delivery) => void
}

/** Makes the `settle` of a subscription. */
export const make = ({ clock, copied, maxDeliveries, onEnd, queue, requests, toSending }: Dependencies) => {
  const entries = (some: ReadonlyArray<Broker.SettleRequest>, then: (request: Broker.SettleRequest) => Done) =>
    some.map((request) => ({ asked: receiptOf(request.delivery).number, then: then(request) }))

  const copyAll = (
    some: ReadonlyArray<{ readonly request: Broker.SettleRequest; readonly outgoing: Outgoing.Outgoing }>,
    then: (request: Broker.SettleRequest) => Done
  ): void => {
    for (const [target, group] of Map.groupBy(some, ({ outgoing }) => outgoing.queue)) {
      requests.send(
        target,
        group.map(({ outgoing, request }) => {
          const receipt = receiptOf(request.delivery)
          return {
            asked: toSending(outgoing, receipt.number),
            then: (error) => {
              if (error !== undefined) return then(request)(error)
              receipt.isCopied = true
              copied.set(receipt.messageId, true)
              requests.remove(entries([request], then))
            }
          }
        })
      )
    }
  }

  /** Ends what is not ours any more; true when it was. */
  const refuse = ({ delivery, settlement }: Broker.SettleRequest): boolean => {
    const receipt = receiptOf(delivery)
    if (receipt.isSettling) return true
    if (!isExpired(receipt, clock.monotonic())) return false
    receipt.isSettling = true
    onEnd(delivery)
    // It may still be there, and then nobody else need work on it. The server would tell success in any case.
    if (settlement._tag === "Ack" || settlement._tag === "Drop" || receipt.isCopied) {
      requests.remove([{ asked: receipt.number, then: () => {} }])
    }
    return true
  }

  const conclude = ({ delivery }: Broker.SettleRequest, hides: boolean, error: BrokerError.BrokerError | undefined) => {
    const fate = error && Broker.fateOf(error)
    if (fate === undefined || fate === "gone") onEnd(delivery)
    else {
      const receipt = receiptOf(delivery)
      receipt.isSettling = false
      if (hides && fate === "unknown") receipt.isUncertain = true
    }
    if (error === undefined || fate === undefined) return undefined
    return { delivery, error, fate, smaller: error.reason === "BodyTooLarge" }
  }

  const settle = (all: ReadonlyArray<Broker.SettleRequest>, done: (failures: Array<Broker.SettleFailure>) => void) => {
    const failures: Array<Broker.SettleFailure> = []
    let left = all.length
    const end = (failure: Broker.SettleFailure | undefined): void => {
      if (failure !== undefined) failures.push(failure)
      if (--left === 0) done(failures)
    }
    const concluding =
      (hides: boolean) =>
      (request: Broker.SettleRequest): Done =>
      (error) =>
        end(conclude(request, hides, error))

    const removed: Array<Broker.SettleRequest> = []
    const hidden: Array<{ readonly request: Broker.SettleRequest; readonly seconds: number }> = []
    const copies: Array<{ readonly request: Broker.SettleRequest; readonly outgoing: Outgoing.Outgoing }> = []
    for (const request of all) {
      const { delivery, settlement } = request
      if (refuse(request)) {
        end({ delivery, error: errorOf("settle", "LeaseLost", "its lease had ended"), fate: "gone" })
        continue
      }
      const receipt = receiptOf(delivery)
      receipt.isSettling = true
      const elapsed = clock.monotonic() - receipt.receivedAt
      const command = commandOf(delivery, settlement, { queue, maxDeliveries, elapsed, now: clock.wallClock() })
      if (command._tag === "Remove") removed.push(request)
      else if (command._tag === "Hide") hidden.push({ request, seconds: command.seconds })
      else copies.push({ request, outgoing: command.outgoing })
    }
    requests.remove(entries(removed, concluding(false)))
    requests.hide(
      hidden.map(({ request, seconds }) => ({
        asked: { handle: receiptOf(request.delivery).number, seconds, isBack: true },
        then: concluding(true)(request)
      }))
    )
    copyAll(copies, concluding(false))
  }

  return (all: ReadonlyArray<Broker.SettleRequest>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    all.length === 0
      ? Effect.succeed([])
      : Effect.callback((resume) => settle(all, (failures) => resume(Effect.succeed(failures))))
}
