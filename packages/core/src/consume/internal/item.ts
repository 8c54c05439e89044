/** A delivery inside the consumer, from its arrival until it is settled. */
import type * as Bag from "../../runtime/Bag.ts"
import type { Subscription } from "../../port/Broker.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Headers } from "../../message/Message.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { DeliveryId } from "../../policy/BackoffState.ts"

/** A message in flight. */
export interface Item extends Bag.Member {
  /** The delivery to settle. A redelivery of the same copy replaces it. */
  delivery: Delivery
  /** The broker's count of attempts, including deliveries that reached no handler. */
  brokerAttempts: number
  /** `undefined` until it is decoded. */
  body: unknown
  /** The headers that the codec decoded; `undefined`: those of the delivery. */
  headers: Headers | undefined
  /** Identifies the delivery, not the message: a redelivery has another key. */
  readonly key: DeliveryId
  /** The adapter's name of the copy, while `Copies` has the item. Only `Copies` changes it. */
  name: string | undefined
  /** Its index in its `WaitQueue`. Only the queue changes it. */
  number: number
  /** When it began to wait for its batch, in monotonic milliseconds. */
  arrived: number
  /**
   * - `decoding`: its body is being decoded.
   * - `waiting`: no handler has begun it.
   * - `begun`: a handler has begun it.
   * - `decided`: its settlement waits for others, or for the end of a lease extension. The lease is not extended again.
   * - `settling`: its settlement was sent to the broker. Its lease is not extended.
   * - `kept`: its settlement failed and will be retried.
   */
  stage: "decoding" | "waiting" | "begun" | "decided" | "settling" | "kept"
  /** `undefined` until it is decided. */
  settlement: Settlement | undefined
  /** Whether its connection or lease is lost, so the broker redelivers the message. */
  isLost: boolean
  /** The settlement that was decided on an earlier delivery, and is repeated on this one. */
  priorSettlement: Settlement | undefined
  /** When its retry or release is due, in monotonic milliseconds; 0 without a delay. */
  due: number
  /** How often its settlement failed because the delivery was lost, earlier deliveries included. */
  losses: number
  /** When its settlement may be retried, in monotonic milliseconds. */
  tryAt: number
  /** A redelivery that arrived during the settlement, and is settled after it. */
  pendingRedelivery: Delivery | undefined
  /** Whether such a redelivery was lost too, so another one will follow. */
  hasLostAgain: boolean
  /** Whether a later delivery of the same copy is handled separately and has newer facts. */
  isSuperseded: boolean
  /** Whether it only ends a duplicate delivery of a settled message. */
  settlesDuplicate: boolean
  /** The group that has it, out or behind; `undefined` without a group, or after it has left its group. */
  group: Group | undefined
  /** Whether it is returned because an earlier message of its group is. */
  isFollowing: boolean
  /** Whether it is returned without a run, so this delivery was no attempt, although the broker counts it. */
  isUncounted: boolean
}

export const isUnbegun = ({ stage }: Item): boolean => stage === "waiting" || stage === "decoding"

/** The messages of one group that are in flight. */
export interface Group {
  readonly name: string
  /** The messages that are being decoded, wait for their batch, run or are being settled, in order. */
  readonly out: Set<Item>
  /** Later messages, each with the function that lets it proceed. */
  readonly behind: Array<{ readonly item: Item; readonly isAlone: boolean; readonly go: () => void }>
  /** Whether no message may join `out`: a handler has begun one of them, or one must run alone. */
  isClosed: boolean
}

/** The state of a consumer, and its number of deliveries by state. */
export interface InFlightCounters {
  /** All of them. */
  inFlight: number
  /** Waiting for their batch. */
  buffered: number
  /** Waiting for earlier messages of their group. */
  behind: number
  /** Being decoded. */
  decoding: number
  /** Lost with their connection or lease, while a handler or a settlement still has them. */
  lost: number
  /** Kept by this process because the broker refuses their settlement or its copy. */
  kept: number
  /** Kept messages of which the broker refuses every settlement. */
  quarantined: number
  /** Waiting for the broker to accept settlements again. */
  held: number
  /** Waiting messages that must run alone. */
  suspects: number
  /** Whether a message that must run alone is running. */
  isAlone: boolean
  /** Whether the last arrival must run alone: the next may have to as well. */
  isThrottledForSuspect: boolean
  /** Whether messages that were sent with the first suspect had time to arrive. */
  hasGathered: boolean
  /** Batches in progress. */
  batches: number
  /**
   * The last progress, in monotonic milliseconds: a message arrived at an idle consumer, a handler began, or a batch or a
   * settlement ended.
   */
  lastMoved: number
  /** Whether the consumer is shutting down. */
  isStopping: boolean
  /** Called when a batch or a settlement has ended, so the consumer may be idle. */
  onMoved: (() => void) | undefined
}

/** The subscription; `undefined` until it is open. Nothing is delivered before. */
export interface SubscriptionRef {
  subscription: Subscription | undefined
}

export const noneInFlight = (): InFlightCounters => ({
  inFlight: 0,
  buffered: 0,
  behind: 0,
  decoding: 0,
  lost: 0,
  kept: 0,
  quarantined: 0,
  held: 0,
  suspects: 0,
  isAlone: false,
  isThrottledForSuspect: false,
  hasGathered: false,
  batches: 0,
  lastMoved: 0,
  isStopping: false,
  onMoved: undefined
})
