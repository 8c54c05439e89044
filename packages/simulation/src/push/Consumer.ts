/** Subscriptions to a broker that pushes: their deliveries, their credit, and how a delivery is settled. */
import { Broker, Outgoing, type Settlement } from "@requeue/core/port"
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

/** The copy that replaces a delivery; `undefined` if the server settles it natively. */
const copyOf = (
  delivery: Parameters<typeof Outgoing.retry>[0],
  settlement: Settlement.Settlement,
  queue: string,
  now: number
): Outgoing.Outgoing | undefined => {
  switch (settlement._tag) {
    case "Retry":
      return settlement.delay === 0 ? undefined : Outgoing.retry(delivery, settlement, queue, now)
    case "Release":
      return settlement.delay === 0 ? undefined : Outgoing.hop(delivery, settlement, queue, now)
    case "DeadLetter":
      return Outgoing.deadLetter(delivery, settlement, queue, now)
    default:
      return undefined
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

    const settleOne = (
      { delivery, settlement }: Broker.SettleRequest,
      then: (failure?: Broker.SettleFailure) => void
    ) => {
      const receipt = receiptOf(delivery)
      const lost = () =>
        then({ delivery, error: Line.errorOf("settle", "LeaseLost", "its connection is lost"), fate: "lost" })
      const acknowledge = (): void => {
        if (isOurs(receipt)) line.send({ _tag: "Ack", tag: receipt.tag })
        if (receipt.nonce !== undefined) settled.add(receipt.nonce)
        // Once a copy is stored, the work is done, whatever becomes of the ack.
        else if (!isOurs(receipt)) return lost()
        then()
      }
      if (!isOurs(receipt)) return lost()
      // Its copy was stored after it was redelivered.
      if (isSettled(receipt)) return acknowledge()
      const copy = copyOf(delivery, settlement, queue, machine.wallClock())
      if (copy !== undefined) {
        return publish(copy, receipt.number, (result) => {
          if (Exit.isSuccess(result)) return acknowledge()
          if (!isOurs(receipt)) return lost()
          const error = Exit.findErrorOption(result)
          const reason = error._tag === "Some" ? error.value : Line.errorOf("settle", "Unsupported", "the client died")
          return then({ delivery, error: reason, fate: Broker.fateOf(reason) })
        })
      }
      if (settlement._tag === "Ack" || settlement._tag === "Drop") return acknowledge()
      line.send({ _tag: "Requeue", tag: receipt.tag, counted: settlement._tag === "Retry" })
      then()
    }

    const settle: Broker.Subscription["settle"] = (requests) =>
      Effect.callback((resume) => {
        const failures: Array<Broker.SettleFailure> = []
        let left = requests.length
        for (const request of requests) {
          settleOne(request, (failure) => {
            if (failure !== undefined) failures.push(failure)
            if (--left === 0) resume(Effect.succeed(failures))
          })
        }
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
