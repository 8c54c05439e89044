/**
 * NSQ's facts about a delivered message: its nsqd, topic, channel, id, timestamp and attempts.
 *
 * When to use: to log which nsqd a message is on, or to measure how long nsqd kept it.
 *
 * @example
 * ```ts
 * import { NsqNative } from "@requeue/adapter-nsq"
 * import type { Handler } from "@requeue/core"
 *
 * const handler = async (message: Handler.Received<unknown>) => console.log(NsqNative.of(message)?.nsqd)
 * ```
 */
import type { Message } from "@requeue/core/port"
import { broker } from "./internal/native.ts"

/** NSQ's facts about a delivered message. Each copy of a message, such as its dead letter, has different facts. */
export interface NsqNative {
  /** The nsqd that delivered the message, as `host:port`. */
  readonly nsqd: string
  readonly topic: string
  readonly channel: string
  /** nsqd's id of the message: 16 characters, unique within a topic of one nsqd. */
  readonly id: string
  /** When nsqd stored the message, in milliseconds since the epoch by its clock. A requeue does not change the time. */
  readonly timestamp: number
  /** Deliveries of this copy as nsqd counts them, this one included. */
  readonly attempts: number
}

/** Returns NSQ's facts about a message or dead letter; `undefined` for messages of other brokers. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): NsqNative | undefined =>
  native?.[broker] as NsqNative | undefined // Set by this adapter.
