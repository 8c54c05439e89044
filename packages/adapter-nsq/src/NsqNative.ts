/**
 * Facts of NSQ about a delivered message: where it came from, and what nsqd itself says of it.
 *
 * When to use: to log which nsqd a message is on, or to measure how long it was there.
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

/** Facts of a delivered message. Each copy, such as a dead letter, has its own. */
export interface NsqNative {
  /** The nsqd that delivered it, as `host:port`. */
  readonly nsqd: string
  readonly topic: string
  readonly channel: string
  /** nsqd's message id: 16 characters, unique within a topic of one nsqd. */
  readonly id: string
  /** When nsqd stored it, in milliseconds since the epoch by its clock. A requeue does not change it. */
  readonly timestamp: number
  /** Deliveries of this copy as nsqd counts them, this one included. */
  readonly attempts: number
}

/** The facts of a message or a dead letter from NSQ; `undefined` for one of another broker. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): NsqNative | undefined =>
  native?.[broker] as NsqNative | undefined // The adapter has made them.
