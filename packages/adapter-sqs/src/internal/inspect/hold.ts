/** The messages that a browser holds: hidden from others until they are removed or returned. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Results } from "../batchCall.ts"
import * as Leases from "../consume/leases.ts"
import { isExpired, type Lease, lost } from "../consume/receipt.ts"
import type { ReceiptCalls } from "../settle/receiptCalls.ts"

/** A held message: no more than is needed to remove or return it. */
interface Held extends Lease {
  /** Whether a call that deletes it is under way, or got no answer. */
  mayBeRemoved: boolean
}

/** Held messages, by name. */
export interface Hold {
  readonly size: () => number
  /** Adds a message that was received, and returns whether it is new. Of one that SQS delivers once more, the newest handle counts. */
  readonly add: (name: string, handle: string, receivedAt: number) => boolean
  /** Extends all leases. */
  readonly extend: Effect.Effect<void>
  /** Why others may have some of it; `undefined` while all of it is held. */
  readonly lost: () => BrokerError.BrokerError | undefined
  /** Deletes messages, and returns the errors of those that are not known to be deleted. */
  readonly remove: (names: ReadonlyArray<string>) => Effect.Effect<Results>
  /** Returns all of it to the queue. */
  readonly release: Effect.Effect<void>
}

/** Milliseconds for which calls that are under way are waited for, before all is returned. */
const grace = 3000

/** Holds nothing yet. */
export const make = (env: {
  readonly queue: string
  readonly fifo: boolean
  readonly calls: ReceiptCalls
  /** Milliseconds of a lease. */
  readonly visibilityTimeout: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}): Hold => {
  const { calls, fifo, now, queue, visibilityTimeout } = env
  const held = new Map<string, Held>()
  const extend = Leases.make({ queue, calls, duration: visibilityTimeout, now })
  let trouble: BrokerError.BrokerError | undefined

  const drop = (name: string, one: Held): void => {
    if (held.get(name) === one) held.delete(name)
  }

  const extended = ([name, one]: readonly [string, Held], error: Results[number]): void => {
    if (error === undefined || held.get(name) !== one) return
    // SQS extends nothing that is deleted.
    if (one.mayBeRemoved && !isExpired(one, now())) held.delete(name)
    else trouble ??= error
  }

  /** The result for a message whose delete has ended. */
  const removed = (name: string, one: Held, error: Results[number]): Results[number] => {
    // By a handle that has expired, a standard queue may delete nothing, and SQS reports success all the same.
    const result = error === undefined && !fifo && isExpired(one, now()) ? Leases.expired(queue, one.leaseError) : error
    if (result === undefined || result.reason === "LeaseLost") drop(name, one)
    else one.mayBeRemoved = BrokerError.isDoubtful(result)
    return result
  }

  return {
    size: () => held.size,
    add: (name, handle, receivedAt) => {
      const isNew = !held.has(name)
      const leaseEnds = receivedAt + visibilityTimeout
      held.set(name, { handle, receivedAt, leaseEnds, leaseError: undefined, mayBeRemoved: false })
      return isNew
    },
    extend: Effect.suspend(() => {
      const all = [...held]
      return Effect.map(extend(all.map(([, one]) => one)), (errors) => {
        for (const [at, entry] of all.entries()) extended(entry, errors[at])
      })
    }),
    lost: () => {
      if (trouble !== undefined) return trouble
      for (const one of held.values()) if (isExpired(one, now())) return Leases.expired(queue, one.leaseError)
      return undefined
    },
    remove: (names) =>
      Effect.suspend(() => {
        const found = names.flatMap((name) => {
          const one = held.get(name)
          return one === undefined || isExpired(one, now()) ? [] : [{ name, one }]
        })
        for (const { one } of found) one.mayBeRemoved = true
        return Effect.map(calls.deleteMessages(found.map(({ one }) => one.handle)), (results) => {
          const told = new Map(found.map(({ name, one }, at) => [name, removed(name, one, results[at])]))
          const gone = lost({ operation: "settle", queue }, "the message is no longer held")
          return names.map((name) => (told.has(name) ? told.get(name) : gone))
        })
      }),
    release: Effect.gen(function* () {
      const all = [...held.values()]
      held.clear()
      trouble = undefined
      // A call that hides a message, and arrives later, would hide what was returned.
      yield* Effect.timeoutOption(calls.idle, Duration.millis(grace))
      const ours = all.filter((one) => !isExpired(one, now()))
      yield* calls.changeVisibility(ours.map(({ handle }) => ({ handle, seconds: 0 })))
    })
  }
}
