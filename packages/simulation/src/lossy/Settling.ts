/** Settles deliveries by FIN and REQ, or by a copy that is stored before its original is finished. */
import { type Broker, type BrokerError, Outgoing } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
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

type Direct = { readonly _tag: "Finish" } | { readonly _tag: "Requeue"; readonly delay: number; readonly due: number }

interface Copy extends Settling.Copy<Direct> {
  readonly isHop: boolean
}

const finished: Direct = { _tag: "Finish" }

const toCommand = (
  { delivery, settlement }: Broker.SettleRequest,
  { cap, isExact, machine, memory, queue }: Dependencies
): Direct | Copy => {
  // Its copy may have been stored after it was redelivered.
  if (memory.isFinished(receiptOf(delivery))) return finished
  const now = machine.wallClock()
  const copy = (outgoing: Outgoing.Outgoing, instead?: Direct, isHop = false): Copy => ({
    _tag: "Copy",
    outgoing,
    isHop,
    instead
  })
  const requeue = (delay: number): Direct => ({
    _tag: "Requeue",
    delay: Math.min(Math.ceil(delay), cap),
    due: now + delay
  })
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return finished
    case "Retry": {
      const { delay } = settlement
      const isDirect = !isExact && delay <= cap && receiptOf(delivery).deliveries < countLimit
      if (isDirect) return requeue(delay)
      return copy(Outgoing.retry(delivery, settlement, queue, now), requeue(delay))
    }
    case "Release": {
      const { delay } = settlement
      if (delay === 0) return requeue(0)
      return copy(Outgoing.hop(delivery, settlement, queue, now), requeue(delay), true)
    }
    case "DeadLetter":
      return copy(Outgoing.deadLetter(delivery, settlement, queue, now))
  }
}

const lossOf = ({ delivery }: Pick<Broker.SettleRequest, "delivery">): BrokerError.BrokerError =>
  receiptOf(delivery).session.isOpen()
    ? Link.errorOf("settle", "LeaseLost", "its lease has ended")
    : Link.errorOf("settle", "ConnectionLost", "the connection that delivered is gone")

/** `settle` and `extend` of a subscription. */
export const make = (dependencies: Dependencies): Pick<Broker.Subscription, "settle" | "extend"> => {
  const { memory, publisher } = dependencies

  /** Writes a command; false if its connection is lost. */
  const write = (receipt: Receipt, command: Direct): boolean => {
    const { id, number: of, session } = receipt
    if (command._tag === "Finish") return session.answer({ _tag: "Fin", id, of })
    if (command.delay > 0) memory.requeued(receipt, command.due)
    return session.answer({ _tag: "Req", id, of, delay: command.delay })
  }
  const remember = ({ delivery }: Broker.SettleRequest): void => memory.finished(receiptOf(delivery))

  return {
    settle: Settling.make<Direct, Copy>({
      claim: (request) => {
        const receipt = receiptOf(request.delivery)
        return receipt.session.take(receipt) ? undefined : lossOf(request)
      },
      release: (request) => {
        const receipt = receiptOf(request.delivery)
        return receipt.session.untake(receipt) ? undefined : lossOf(request)
      },
      toCommand: (request) => toCommand(request, dependencies),
      ack: finished,
      carryOut: (claims, done) => {
        for (const claim of claims) {
          if (write(receiptOf(claim.delivery), claim.command)) done(claim)
          else done(claim, lossOf(claim), "lost")
        }
      },
      publish: (claims, done) => {
        for (const claim of claims) {
          const { isHop, outgoing } = claim.command
          const { number, session } = receiptOf(claim.delivery)
          publisher.publish(outgoing, { of: number, prefer: session.server, isHop }, (error) => done(claim, error))
        }
      },
      ended: (claim, end) => {
        if (end === "gone") remember(claim)
      }
    }),
    // A daemon answers TOUCH only on failure, so the next call shows it.
    extend: (deliveries) =>
      Effect.sync(() =>
        deliveries.flatMap((delivery) => {
          const receipt = receiptOf(delivery)
          return receipt.session.touch(receipt) ? [] : [{ delivery, error: lossOf({ delivery }), fate: "lost" }]
        })
      )
  }
}
