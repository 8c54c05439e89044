/** Subscriptions to a broker that pushes: their deliveries, their credit, and how a delivery is settled. */
import { type Broker, Outgoing, type Settlement } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import * as Line from "./Line.ts"
import type { Server } from "./Server.ts"

interface Receipt {
  readonly number: number
  readonly tag: number
  readonly epoch: number
  readonly nonce: number | undefined
}

const receiptOf = ({ receipt }: { readonly receipt: unknown }): Receipt => receipt as Receipt // this client makes all of them

/** Publishes one message; `of` is the delivery that it is a copy of. */
export type Publish = (outgoing: Outgoing.Outgoing, of: number | undefined, then: Line.Then) => void

type Direct = { readonly _tag: "Ack" } | { readonly _tag: "Requeue"; readonly counted: boolean }

const ack: Direct = { _tag: "Ack" }

const commandOf = (
  delivery: Parameters<typeof Outgoing.retry>[0],
  settlement: Settlement.Settlement,
  queue: string,
  now: number
): Direct | Settling.Copy<Direct> => {
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return ack
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Retry":
      return settlement.delay === 0
        ? { _tag: "Requeue", counted: true }
        : { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
    case "Release":
      return settlement.delay === 0
        ? { _tag: "Requeue", counted: false }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  }
}

/**
 * Subscribes on a separate connection.
 *
 * Long, because settlements, deliveries and credit share one connection.
 */
export const subscribing =
  (machine: Machine, server: Server, publish: Publish, isNameless: boolean): Broker.Service["subscribe"] =>
  ({ onDelivery, onReconnect, queue, retry }) => {
    let credit = 0
    let lives = 0
    /** The acknowledged copies: an ack that was lost with its connection is written again. */
    const settled = new Set<number>()
    const isSettled = ({ nonce }: Receipt): boolean => nonce !== undefined && settled.has(nonce)
    const open = (): Line.Line =>
      Line.open({
        machine,
        server,
        place: `${machine.name} consume ${queue}`,
        onUp: () => void machine.after(0, consume),
        onDeliver: ({ count, delivery: number, parcel, tag }) => {
          const receipt: Receipt = { number, tag, epoch: line.epoch(), nonce: isNameless ? undefined : parcel.nonce }
          if (isSettled(receipt)) return line.send({ _tag: "Ack", tag })
          onDelivery(Parcels.toDelivery(parcel, machine, { delivery: number, count, receipt }))
        }
      })
    const consume = (): void => {
      if (lives++ > 0) onReconnect()
      const limit = retry.maxDeliveries + 10
      line.ask(
        "subscribe",
        (seq) => ({ _tag: "Consume", seq, queue, limit }),
        () => {}
      )
      line.send({ _tag: "Credit", credit })
    }
    let line: Line.Line
    const isOurs = ({ epoch }: Receipt): boolean => line.isUp() && epoch === line.epoch()

    const lost = () => Line.errorOf("settle", "LeaseLost", "its connection is lost")
    const remember = ({ delivery }: Broker.SettleRequest): void => {
      const { nonce } = receiptOf(delivery)
      if (nonce !== undefined) settled.add(nonce)
    }
    const settle = Settling.make<Direct>({
      claim: ({ delivery }) => (isOurs(receiptOf(delivery)) ? undefined : lost()),
      release: ({ delivery }) => (isOurs(receiptOf(delivery)) ? undefined : lost()),
      // Its copy may have been stored after it was redelivered.
      toCommand: ({ delivery, settlement }) =>
        isSettled(receiptOf(delivery)) ? ack : commandOf(delivery, settlement, queue, machine.wallClock()),
      ack,
      carryOut: (claims, done) => {
        for (const claim of claims) {
          const receipt = receiptOf(claim.delivery)
          if (!isOurs(receipt)) {
            done(claim, lost(), "lost")
            continue
          }
          line.send({ ...claim.command, tag: receipt.tag })
          done(claim)
        }
      },
      publish: (claims, done) => {
        for (const claim of claims) {
          publish(claim.command.outgoing, receiptOf(claim.delivery).number, (result) => {
            if (Exit.isSuccess(result)) return done(claim)
            const error = Exit.findErrorOption(result)
            const died = Line.errorOf("settle", "Unsupported", "the client died")
            return done(claim, error._tag === "Some" ? error.value : died)
          })
        }
      },
      ended: (claim, end) => {
        if (end === "gone") remember(claim)
      },
      // The server does not report why it refuses a copy.
      mayBeSmaller: () => true
    })

    const started = Effect.sync((): Broker.Subscription => {
      line = open()
      return {
        credit: (limit) => {
          credit = limit
          line.send({ _tag: "Credit", credit })
        },
        settle,
        extend: () => Effect.succeed([]),
        identify: (delivery) => {
          const { nonce } = receiptOf(delivery)
          return nonce === undefined ? undefined : String(nonce)
        }
      }
    })
    return Effect.acquireRelease(started, () => Effect.sync(() => line.close()))
  }
