/** A delivery inside the consumer, from its arrival until it is settled or lost. */
import type { Delivery } from "../../message/Delivery.ts"
import type { Headers } from "../../message/Message.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { DeliveryId } from "../../policy/BackoffState.ts"
import type { Subscription } from "../../port/Broker.ts"
import type * as Bag from "../../runtime/Bag.ts"
import type * as Lifecycle from "../Lifecycle.ts"

/** A message in flight. It serves as the request of its settlement, which saves an object per message. */
export interface Item extends Bag.Member {
  /** The delivery to settle. Only `Deliveries` changes this, `state` and `history`, as `Lifecycle.step` says. */
  delivery: Delivery
  state: Lifecycle.State
  history: Lifecycle.History
  /** Its settlement, once it is decided: adapters read it. */
  settlement: Settlement
  /** Identifies the delivery, not the message: a redelivery has another key. */
  readonly key: DeliveryId
  /** `undefined` until it is decoded. */
  body: unknown
  /** The headers that the codec decoded; `undefined`: those of the delivery. */
  headers: Headers | undefined
  /** The group that has it, out or behind; `undefined` without a group, or after it has left its group. */
  group: Group | undefined
  /** The adapter's name of the copy, while `Copies` has the item. Only `Copies` changes it. */
  name: string | undefined
  /** When it began to wait for its batch, in monotonic milliseconds. */
  arrived: number
  /** Its index in its `WaitQueue`. Only the queue changes it. */
  number: number
}

/** The messages of one group that are in flight. */
export interface Group {
  readonly name: string
  /** The messages that are being decoded, wait for their batch, run or are being settled, in order. */
  readonly out: Set<Item>
  /** Later messages, each with the function that lets it proceed. */
  readonly behind: Array<{ readonly item: Item; readonly isAlone: boolean; readonly go: () => void }>
  /** Those of `out` that are returned because an earlier one is. */
  readonly following: Set<Item>
  /** Whether no message may join `out`: a handler has begun one of them, or one must run alone. */
  isClosed: boolean
}

/** The subscription; `undefined` until it is open. Nothing is delivered before. */
export interface SubscriptionRef {
  subscription: Subscription | undefined
}
