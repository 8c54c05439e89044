/** Settles deliveries by FIN and REQ, or by a copy that is stored before its original is finished. */
import { Broker, type BrokerError, type Delivery, Outgoing } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import * as Link from "./Link.ts"
import type { Memory } from "./Memory.ts"
import type { Publisher } from "./Publisher.ts"
import { type Receipt, receiptOf } from "./Session.ts"

interface Dependencies {
  readonly machine: Machine
  readonly queue: string
  readonly publisher: Publisher
  readonly memory: Memory
  /** The longest delay of a REQ, in milliseconds. */
  readonly cap: number
  /** Whether every retry is a copy. */
  readonly isExact: boolean
}

/** Deliveries after which a copy continues the count: a daemon's count restarts after 65,535. */
const countLimit = 0x8000

type Then = (failure?: Broker.SettleFailure) => void

interface Requeue {
  readonly delay: number
  readonly due: number
}

type Command =
  | { readonly _tag: "Finish" }
  | { readonly _tag: "Requeue"; readonly requeue: Requeue }
  | {
      readonly _tag: "Copy"
      readonly outgoing: Outgoing.Outgoing
      readonly isHop: boolean
      readonly instead: Requeue | undefined
    }

const toCommand = (
  { delivery, settlement }: Broker.SettleRequest,
  { cap, isExact, machine, queue }: Dependencies
): Command => {
  const now = machine.wallClock()
  const copy = (outgoing: Outgoing.Outgoing, instead?: Requeue, isHop = false): Command => ({
    _tag: "Copy",
    outgoing,
    isHop,
    instead
  })
  const requeue = (delay: number): Requeue => ({ delay: Math.min(Math.ceil(delay), cap), due: now + delay })
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Finish" }
    case "Retry": {
      const { delay } = settlement
      const isDirect = !isExact && delay <= cap && receiptOf(delivery).deliveries < countLimit
      if (isDirect) return { _tag: "Requeue", requeue: requeue(delay) }
      return copy(Outgoing.retry(delivery, settlement, queue, now), requeue(delay))
    }
    case "Release": {
      const { delay } = settlement
      if (delay === 0) return { _tag: "Requeue", requeue: requeue(0) }
      return copy(Outgoing.hop(delivery, settlement, queue, now), requeue(delay), true)
    }
    case "DeadLetter":
      return copy(Outgoing.deadLetter(delivery, settlement, queue, now))
  }
}

const gone = (delivery: Delivery.Delivery): Broker.SettleFailure => ({
  delivery,
  error: receiptOf(delivery).session.isOpen()
    ? Link.errorOf("settle", "LeaseLost", "its lease has ended")
    : Link.errorOf("settle", "ConnectionLost", "the connection that delivered is gone"),
  fate: "lost"
})

/** `settle` and `extend` of a subscription. */
export const make = (dependencies: Dependencies): Pick<Broker.Subscription, "settle" | "extend"> => {
  const { memory, publisher } = dependencies

  const finish = (receipt: Receipt): boolean => {
    const { id, number: of, session } = receipt
    const isWritten = session.answer({ _tag: "Fin", id, of })
    if (isWritten) memory.finished(receipt)
    return isWritten
  }

  const requeue = (receipt: Receipt, { delay, due }: Requeue): boolean => {
    if (delay > 0) memory.requeued(receipt, due)
    const { id, number: of, session } = receipt
    return session.answer({ _tag: "Req", id, of, delay })
  }

  const settleOne = (request: Broker.SettleRequest, then: Then): void => {
    const { delivery } = request
    const receipt = receiptOf(delivery)
    if (!receipt.session.take(receipt)) return then(gone(delivery))
    const end = (isWritten: boolean): void => then(isWritten ? undefined : gone(delivery))
    // Its copy may have been stored after it was redelivered.
    const command = memory.isFinished(receipt) ? { _tag: "Finish" as const } : toCommand(request, dependencies)
    if (command._tag === "Finish") return end(finish(receipt))
    if (command._tag === "Requeue") return end(requeue(receipt, command.requeue))
    const origin = { of: receipt.number, prefer: receipt.session.server, isHop: command.isHop }
    publisher.publish(command.outgoing, origin, (error) => {
      if (error === undefined) {
        // The settlement has succeeded, even if the original is redelivered: then it is finished at once.
        memory.finished(receipt)
        finish(receipt)
        return then()
      }
      const fate = Broker.fateOf(error)
      if (fate === "rejected" && command.instead !== undefined) return end(requeue(receipt, command.instead))
      then(receipt.session.untake(receipt) ? failed(delivery, error, fate) : gone(delivery))
    })
  }

  return {
    settle: (requests) =>
      Effect.callback((resume) => {
        const failures: Array<Broker.SettleFailure> = []
        let left = requests.length
        for (const request of requests) {
          settleOne(request, (failure) => {
            if (failure !== undefined) failures.push(failure)
            if (--left === 0) resume(Effect.succeed(failures))
          })
        }
      }),
    // A daemon answers TOUCH only on failure, so the next call shows it.
    extend: (deliveries) =>
      Effect.sync(() =>
        deliveries.flatMap((delivery) => {
          const receipt = receiptOf(delivery)
          return receipt.session.touch(receipt) ? [] : [gone(delivery)]
        })
      )
  }
}

const failed = (
  delivery: Delivery.Delivery,
  error: BrokerError.BrokerError,
  fate: Broker.Fate
): Broker.SettleFailure => ({ delivery, error, fate, smaller: error.reason === "BodyTooLarge" })
