/** The messages that a browser holds: hidden from others until they are removed or returned. */
import { Broker, type BrokerError, type Delivery } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Leases from "../consume/leases.ts"
import { isExpired, type Receipt, receiptOf } from "../consume/receipt.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"

/** The receipt of a held message. The hold keeps no more of a message, because there may be 100,000. */
type Held = Pick<Receipt, "handle" | "leaseEnds" | "leaseError" | "messageId" | "receivedAt">

/** Messages that are extended at a time: as many as the calls under way take. Each has its answer when these have theirs. */
const extended = 160

/** Milliseconds for which calls under way are waited for, before all is returned. */
const grace = 3000

/** Holds nothing yet. `duration` is that of a lease in milliseconds, `now` in monotonic milliseconds. */
export const make = (queue: string, calls: ReceiptCalls, duration: number, now: () => number) => {
  const held = new Map<string, Held>()
  const extend = Leases.make({ queue, calls, duration, now })
  const isOurs = (one: Held): boolean => !isExpired(one, now())

  const extendSome = (some: ReadonlyArray<Held>) =>
    Effect.suspend(() => {
      // Others may have been removed meanwhile.
      const ours = some.filter((one) => held.get(one.messageId) === one)
      return Effect.map(extend(ours.map((receipt) => ({ receipt }))), (failures) => {
        for (const { delivery } of failures) {
          const lost = receiptOf(delivery)
          // SQS extends nothing that was deleted meanwhile.
          if (held.has(lost.messageId)) lost.leaseEnds = Number.NEGATIVE_INFINITY
        }
      })
    })

  const remove = Effect.fnUntraced(function* (deliveries: ReadonlyArray<Delivery.Delivery>) {
    const found = deliveries.map((delivery) => held.get(receiptOf(delivery).messageId))
    const ours = found.filter((one): one is Held => one !== undefined && isOurs(one))
    // Lest they are extended or returned while they are deleted.
    for (const { messageId } of ours) held.delete(messageId)
    const results = yield* calls.deleteMessages(ours.map(({ handle }) => handle))
    return deliveries.flatMap((delivery, position): ReadonlyArray<Broker.SettleFailure> => {
      const at = ours.findIndex((one) => one === found[position])
      const one = ours[at]
      // By a handle that has expired, a standard queue may delete nothing, and SQS reports success all the same.
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
    /** Why others may have some of it; `undefined` while all of it is held. */
    loss: (): BrokerError.BrokerError | undefined => {
      const lost = [...held.values()].find((one) => !isOurs(one))
      return lost === undefined ? undefined : Leases.expired(queue, lost.leaseError)
    },
    /** As `remove` of a browser. It goes on when it is interrupted, and holds again what is not deleted. */
    remove: (deliveries: ReadonlyArray<Delivery.Delivery>) =>
      Effect.flatMap(Effect.forkDetach(remove(deliveries), { startImmediately: true }), Fiber.join),
    /** Returns all of it to the queue. */
    release: Effect.gen(function* () {
      // A call that hides a message, and arrives later, would hide what was returned.
      yield* Effect.timeoutOption(calls.idle, Duration.millis(grace))
      const handles = [...held.values()].filter(isOurs).map(({ handle }) => handle)
      held.clear()
      yield* calls.changeVisibility(handles.map((handle) => ({ handle, seconds: 0 })))
    })
  }
}
