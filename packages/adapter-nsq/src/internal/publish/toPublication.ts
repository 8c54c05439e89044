/** Converts an outgoing message to a message for nsqd. Pure. */
import { BrokerError, Metadata, type Outgoing } from "@requeue/core/port"
import type { Limits } from "../limits.ts"
import type { Queue } from "../names.ts"
import * as Wire from "../wire.ts"
import type { Publication } from "./publisher.ts"

/** The circumstances of a publication. */
export interface PublicationContext {
  readonly limits: Pick<Limits, "maxReqTimeout" | "maxMsgSize">
  readonly envelope: "always" | "never"
  /** Milliseconds since the epoch. */
  readonly now: number
}

const refusal = (
  { queue }: Outgoing.Outgoing,
  reason: "BodyTooLarge" | "Unsupported",
  detail: string,
  remedy: string
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "nsq", operation: "publish", queue, reason, detail, remedy })

/** The lower one is the limit. */
const raise = "raise --max-msg-size of nsqd, and the option maxMsgSize where it is set"

/** Returns the size of the largest body that a program may send, in bytes. A copy may be larger. */
const bodyLimit = ({ limits: { maxMsgSize }, envelope }: PublicationContext): number =>
  envelope === "never" ? maxMsgSize : maxMsgSize - Wire.reserve(maxMsgSize)

/** A message to publish. See {@link SentItem}. */
export interface Item {
  readonly message: Outgoing.Outgoing
  readonly target: Queue
  /** Whether it is a copy of a delivery, which may be larger than a sent message. */
  readonly isCopy: boolean
  /** Whether it is the next hop of a long delay. Default: false. */
  readonly isHop?: boolean
  /** The nonce of a message that is stored on two nsqd; see `Wire`. */
  readonly nonce?: string | undefined
}

/** A message that a program sends to a queue. A class: see `ShortList`. */
export class SentItem implements Item {
  readonly message: Outgoing.Outgoing
  readonly target: Queue
  readonly isCopy: boolean

  constructor(message: Outgoing.Outgoing, target: Queue, isCopy: boolean) {
    this.message = message
    this.target = target
    this.isCopy = isCopy
  }
}

/** A message as nsqd gets it. A class: see `ShortList`. */
class Made implements Publication {
  readonly queue: string
  readonly topic: string
  readonly payload: Buffer
  readonly defer: number

  constructor(queue: string, topic: string, payload: Buffer, defer: number) {
    this.queue = queue
    this.topic = topic
    this.payload = payload
    this.defer = defer
  }
}

/** Returns the message for nsqd, or why it cannot be published. */
export const toPublication = (
  { isCopy, isHop = false, message, nonce, target }: Item,
  context: PublicationContext
): Publication | BrokerError.BrokerError => {
  const { envelope, limits } = context
  const { body, queue } = message
  if (!isCopy && body.length > bodyLimit(context)) {
    const detail = `the body has ${body.length} bytes, the limit is ${bodyLimit(context)}`
    return refusal(message, "BodyTooLarge", detail, `Send a smaller body, or ${raise}`)
  }
  const wait = remaining(message, context)
  const defer = Math.min(wait, limits.maxReqTimeout)
  const publication = (payload: Buffer): Publication => new Made(queue, target.topic, payload, defer)
  const bare = () => publication(Buffer.from(body.buffer, body.byteOffset, body.byteLength))
  if (envelope === "never" && !target.isOwn) {
    return body.length === 0
      ? refusal(message, "Unsupported", "nsqd does not accept an empty message", `Set envelope: "always"`)
      : bare()
  }
  // The delay of a hop is the difference of two clocks, so the consumer also checks its due time.
  const isWhole = defer > 0 && defer === wait && !isHop
  const parts = { ...message, deferred: isWhole ? defer : undefined, nonce }
  const json = Wire.json(parts)
  const length = Buffer.byteLength(json)
  // A sent message reserves room for the metadata of its copies; with a small limit, for what the core does not
  // truncate.
  const size = length + (isCopy ? 0 : Math.min(Metadata.budget, Wire.reserve(limits.maxMsgSize) / 2))
  const enveloped = Wire.size(size, body.length)
  if (size <= Wire.jsonLimit && enveloped <= limits.maxMsgSize) return publication(Wire.encode(parts, json))
  if (isCopy && mayBeBare(message, limits)) return bare()
  const detail = `body, headers and metadata have ${enveloped} bytes, the limit is ${limits.maxMsgSize}, and ${Wire.jsonLimit} without the body`
  // The limit of the envelope does not depend on nsqd.
  const remedy = size > Wire.jsonLimit ? "Send less in headers" : `Send a smaller body, less in headers, or ${raise}`
  return refusal(message, "BodyTooLarge", detail, remedy)
}

/**
 * Whether a copy can be published without its envelope: a foreign message of the largest size has no room for one. The
 * copy may lose the origin and error of a dead letter, but no headers, attempts or delay.
 */
const mayBeBare = ({ body, headers, metadata }: Outgoing.Outgoing, { maxMsgSize }: { maxMsgSize: number }): boolean => {
  if (Object.keys(headers).length > 0 || metadata.attempts > 0 || metadata.notBefore > 0) return false
  const least = { headers, metadata: Metadata.reduce(metadata, "all"), deferred: undefined, nonce: undefined }
  const hasRoom = Wire.size(Buffer.byteLength(Wire.json(least)), body.length) <= maxMsgSize
  return !hasRoom && body.length > 0 && body.length <= maxMsgSize
}

/** Returns the whole milliseconds until the message is due. Time spent waiting for a connection is subtracted. */
const remaining = ({ delay, metadata }: Outgoing.Outgoing, { now }: PublicationContext): number => {
  if (delay === 0) return 0
  const left = metadata.notBefore === 0 ? delay : Math.min(delay, metadata.notBefore - now)
  return Math.max(1, Math.ceil(left))
}
