/** Messages and settlements of the core in the terms of the history. All kinds share it. */
import { type Delivery, Metadata, type Settlement } from "@requeue/core/port"
import type { Asked } from "../History.ts"
import { named } from "../Scenario.ts"
import { keyHeader, keyOf } from "./Parcel.ts"

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

const cutOf = (settlement: Settlement.Settlement): number =>
  "cut" in settlement && settlement.cut !== undefined ? Metadata.truncations.indexOf(settlement.cut) + 1 : 0

/** A settlement in the form of the history. */
export const asked = (settlement: Settlement.Settlement): Asked => ({
  tag: settlement._tag,
  delay: "delay" in settlement ? settlement.delay : 0,
  reason: "reason" in settlement ? settlement.reason : undefined,
  queue: "queue" in settlement ? named(settlement.queue) : undefined,
  cut: cutOf(settlement)
})
