/** Translates between the messages of the core and those on the wire. The clients of all models share it. */
import { type Delivery, Metadata, type Outgoing, type Settlement } from "@requeue/core/port"
import type { Asked } from "../History.ts"
import type { Machine } from "./Machine.ts"
import { keyHeader, keyOf, type Parcel } from "./Store.ts"
import type { World } from "./World.ts"

/** The native fact that links a handler run to a delivery. A header would make deliveries of one copy differ. */
const mark = "delivery"

/** The number of the delivery that a handler sees. */
export const deliveryOf = ({ native }: Pick<Delivery.Delivery, "native">): number => Number(native?.[mark])

/** The native fact that has the key of a message without headers, whose body a handler may change. */
const markKey = "key"

/** The key of the message that a handler sees. */
export const handledKeyOf = ({ headers, native }: Pick<Delivery.Delivery, "headers" | "native">): number =>
  Number(headers[keyHeader] ?? native?.[markKey])

/** The delivery, with the facts that link a handler run to it. */
export const marked = (delivery: Delivery.Delivery, number: number): Delivery.Delivery => {
  // `native` may be a getter of a class, which a spread does not copy.
  const { native } = delivery
  if (native !== undefined && mark in native) return delivery
  return { ...delivery, native: Object.freeze({ ...native, [mark]: number, [markKey]: keyOf(delivery) }) }
}

/** A message as a client puts it on the wire. */
export const fromOutgoing = (world: World, { body, headers, metadata }: Outgoing.Outgoing): Parcel => {
  return { body, headers, metadata: Metadata.encode(metadata), nonce: world.number() }
}

/** The facts that a broker reports of a delivery, besides the parcel. */
export interface Told {
  readonly delivery: number
  /** The broker's count of the deliveries of this copy, this one included. */
  readonly count: number
  readonly receipt: unknown
  /** When the broker received the message, in milliseconds since the epoch, if it reports that. */
  readonly sentAt?: number
  /** The broker's own name of the message, if it has one. */
  readonly id?: string
}

/** The delivery that a client makes of a parcel. */
export const toDelivery = (parcel: Parcel, machine: Machine, told: Told): Delivery.Delivery => {
  const { sentAt } = told
  const known = parcel.metadata === undefined ? undefined : Metadata.decode(parcel.metadata, sentAt)
  const id = told.id ?? parcel.headers["id"] ?? "foreign"
  const metadata = known ?? Metadata.make(id, sentAt ?? machine.wallClock())
  return {
    body: parcel.body,
    headers: Object.freeze({ ...parcel.headers }),
    native: Object.freeze({ [mark]: told.delivery }),
    attempts: metadata.attempts + told.count,
    metadata,
    redelivered: told.count > 1,
    receipt: told.receipt
  }
}

const cutOf = (settlement: Settlement.Settlement): number =>
  "cut" in settlement && settlement.cut !== undefined ? Metadata.truncations.indexOf(settlement.cut) + 1 : 0

/** A settlement in the form of the history. */
export const asked = (settlement: Settlement.Settlement): Asked => ({
  tag: settlement._tag,
  delay: "delay" in settlement ? settlement.delay : 0,
  reason: "reason" in settlement ? settlement.reason : undefined,
  queue: "queue" in settlement ? settlement.queue : undefined,
  cut: cutOf(settlement)
})

/** The number of the delivery that a receipt is for, by a client that writes it there. */
export const numberOf = ({ receipt }: Delivery.Delivery): number => {
  const { number } = receipt as { readonly number: number } // as the clients make them
  return number
}
