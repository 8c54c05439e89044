/** A delivery inside the consumer, from its arrival until the broker has taken its settlement. */
import type * as Bag from "../../runtime/Bag.ts"
import type { Subscription } from "../../port/Broker.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Headers } from "../../message/Message.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { DeliveryId } from "../../policy/BackoffState.ts"

/** A message in flight. */
export interface Item extends Bag.Member {
  /** The delivery that will be settled. A redelivery of the same copy takes its place. */
  delivery: Delivery
  /** The attempts as the broker told them, before those were taken out that are known to have been no attempts. */
  brokerAttempts: number
  /** `undefined` until it is decoded. */
  body: unknown
  /** The headers that its codec found in the body; `undefined` for the delivery's own. */
  headers: Headers | undefined
  /** Identifies the delivery, not the message: a redelivery has another key. */
  readonly key: DeliveryId
  /** The adapter's name of its copy, while it is found by that. Only `Copies` changes it. */
  name: string | undefined
  /** Its place in the line in which it waits. Only the line changes it. */
  number: number
  /** When it began to wait for its batch, in monotonic milliseconds. */
  arrived: number
  /**
   * - `decoding`: its body is being decoded.
   * - `waiting`: no handler has begun it.
   * - `begun`: a handler has begun it.
   * - `decided`: its settlement waits for others or for an extension of its lease, which is not extended again.
   * - `settling`: its settlement is on its way to the broker, and its lease is not extended.
   * - `kept`: the broker did not take its settlement, which will be tried again.
   */
  stage: "decoding" | "waiting" | "begun" | "decided" | "settling" | "kept"
  /** `undefined` until it is decided. */
  settlement: Settlement | undefined
  /** Whether its connection or lease is known to be lost: the broker delivers the message again. */
  isLost: boolean
  /** The settlement that was decided on a delivery of it before: it is repeated on this one, when its turn comes. */
  priorSettlement: Settlement | undefined
  /** When its retry or release is due, in monotonic milliseconds; 0 without a delay. */
  due: number
  /** How often the broker said of its settlement that the delivery is lost, the deliveries before it included. */
  losses: number
  /** When its settlement may be tried again, in monotonic milliseconds: it has failed, or was lost several times. */
  tryAt: number
  /** A redelivery that came while the settlement was under way, and is settled after it. */
  pendingRedelivery: Delivery | undefined
  /** Whether such a redelivery was lost in its turn, so that there will be another one. */
  hasLostAgain: boolean
  /** Whether a later delivery of the same copy is handled on its own, and knows better. */
  isSuperseded: boolean
  /** Whether it only ends another delivery of a message that has been settled. */
  settlesDuplicate: boolean
  /** The group that has it, out or behind; `undefined` for one of no group, and for one that has left its group. */
  group: Group | undefined
  /** Whether it goes back because one before it in its group does. */
  isFollowing: boolean
  /** Whether it goes back without a run, so that this delivery was no attempt, though the broker counts it. */
  isUncounted: boolean
}

/** Whether no handler has begun it. */
export const isUnbegun = ({ stage }: Item): boolean => stage === "waiting" || stage === "decoding"

/** The messages of one group that are in flight. */
export interface Group {
  readonly name: string
  /** Those whose turn has come, in order. */
  readonly out: Set<Item>
  /** Those that wait for these, and what each does when its turn has come. */
  readonly behind: Array<{ readonly item: Item; readonly isAlone: boolean; readonly go: () => void }>
  /** Whether no other may join those that are out: a handler has begun them, or one of them must be alone. */
  isClosed: boolean
}

/** How many deliveries a consumer has, by what becomes of them, and its state. */
export interface InFlightCounters {
  /** All of them. */
  inFlight: number
  /** Those that wait for their batch. */
  buffered: number
  /** Those that wait behind others of their group. */
  behind: number
  /** Those whose body is being decoded. */
  decoding: number
  /** Those that a lost connection or lease has taken away, while a handler or a settlement still has them. */
  lost: number
  /** Those that this process keeps because the broker refuses their settlement, or the copy that it takes. */
  kept: number
  /** Those among them of which the broker refuses everything. */
  quarantined: number
  /** Those whose settlement waits for the broker. */
  held: number
  /** Those that wait, and must run alone. */
  suspects: number
  /** Whether one of those runs. */
  isAlone: boolean
  /** Whether the last message that came is one of those: the next may be another one. */
  isThrottledForSuspect: boolean
  /** Whether those that come with the first of them had the time to come. */
  hasGathered: boolean
  /** Batches in progress. */
  batches: number
  /**
   * When a message arrived at a consumer that had none to work on, a handler began, or a batch or a settlement ended, in
   * monotonic milliseconds.
   */
  lastMoved: number
  /** Whether the consumer shuts down. */
  isStopping: boolean
  /** Called when a batch or a settlement has ended, by which the consumer may have become idle. */
  onMoved: (() => void) | undefined
}

/** The subscription, once it is open. Nothing is delivered before. */
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
