/** The messages that a browser holds: hidden from others until they are removed or returned. */
import { Broker, type BrokerError, type Delivery } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Leases from "../consume/leases.ts"
import { isExpired, type Receipt, receiptOf } from "../consume/receipt.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"

/** The receipt of a held message. Nothing else is kept, because there may be 100,000 messages. */
type Held = Pick<Receipt, "handle" | "leaseEnds" | "leaseError" | "messageId" | "receivedAt">

/** Messages per extension round: as many as the concurrent calls accept. */
const extended = 160

/** Milliseconds to wait for running calls before all messages are returned. */
const grace = 3000

/** Starts empty. `duration` is the lease in milliseconds, `now` in monotonic milliseconds. */
export const make = (queue: string, calls: ReceiptCalls, duration: number, now: () => number) => {
  const held = new Map<string, Held>()
  const extend = Leases.make({ queue, calls, duration, now })
  const isOurs = (one: Held): boolean => !isExpired(one, now())

  const extendSome = (some: ReadonlyArray<Held>) =>
    Effect.suspend(() => {
      // Some may have been removed meanwhile.
      const ours = some.filter((one) => held.get(one.messageId) === one)
      return Effect.map(extend(ours.map((receipt) => ({ receipt }))), (failures) => {
        for (const { delivery, fate } of failures) {
          const lost = receiptOf(delivery)
          // SQS does not extend deleted messages.
          if (fate === "lost" && held.has(lost.messageId)) lost.leaseEnds = Number.NEGATIVE_INFINITY
        }
      })
    })

  const remove = Effect.fnUntraced(function* (deliveries: ReadonlyArray<Delivery.Delivery>) {
    const found = deliveries.map((delivery) => held.get(receiptOf(delivery).messageId))
    const ours = found.filter((one): one is Held => one !== undefined && isOurs(one))
    // First, so they are not extended or returned while they are deleted.
    for (const { messageId } of ours) held.delete(messageId)
    const results = yield* calls.deleteMessages(ours.map(({ handle }) => handle))
    return deliveries.flatMap((delivery, position): ReadonlyArray<Broker.SettleFailure> => {
      const at = ours.findIndex((one) => one === found[position])
      const one = ours[at]
      // With an expired handle, SQS may report success without deleting the message on a standard queue.
      const error = one !== undefined && isOurs(one) ? results[at] : Leases.expired(queue)
      if (error === undefined) return []
      const fate = Broker.fateOf(error)
      if (one !== undefined && fate !== "lost") held.set(one.messageId, one)
      return [{ delivery, error, fate }]
    })
  })

  return {
    size: () => held.size,
    /** Adds a message, or the newest receipt of one that SQS delivers twice; returns whether it is new. */
    add: (one: Held): boolean => {
      const isNew = !held.has(one.messageId)
      held.set(one.messageId, one)
      return isNew
    },
    /** Extends all leases. */
    extend: Effect.suspend(() => {
      const all = [...held.values()]
      const starts = Array.from({ length: Math.ceil(all.length / extended) }, (_, at) => at * extended)
      return Effect.forEach(starts, (start) => extendSome(all.slice(start, start + extended)), { discard: true })
    }),
    /** Returns why other consumers may have some messages; `undefined` while all are held. */
    loss: (): BrokerError.BrokerError | undefined => {
      const lost = [...held.values()].find((one) => !isOurs(one))
      return lost === undefined ? undefined : Leases.expired(queue, lost.leaseError)
    },
    /** Like `remove` of a browser. Continues when interrupted, and holds messages again that were not deleted. */
    remove: (deliveries: ReadonlyArray<Delivery.Delivery>) =>
      Effect.flatMap(Effect.forkDetach(remove(deliveries), { startImmediately: true }), Fiber.join),
    /** Returns all messages to the queue. */
    release: Effect.gen(function* () {
      // A late call would hide returned messages again.
      yield* Effect.timeoutOption(calls.idle, Duration.millis(grace))
      const handles = [...held.values()].filter(isOurs).map(({ handle }) => handle)
      held.clear()
      yield* calls.changeVisibility(handles.map((handle) => ({ handle, seconds: 0 })))
    })
  }
}
