/** From an outgoing message to the message for nsqd. Pure. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
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

/** Bytes of the largest body that a program may send. A copy may be larger. */
const bodyLimit = ({ limits: { maxMsgSize }, envelope }: PublicationContext): number =>
  envelope === "never" ? maxMsgSize : maxMsgSize - Wire.reserve

/** The message for nsqd, or the reason why it cannot be published. */
export const toPublication = (
  {
    isCopy,
    message,
    target
  }: { readonly message: Outgoing.Outgoing; readonly target: Queue; readonly isCopy: boolean },
  context: PublicationContext
): Publication | BrokerError.BrokerError => {
  const { envelope, limits } = context
  const { body, queue } = message
  if (!isCopy && body.length > bodyLimit(context)) {
    const detail = `the body has ${body.length} bytes, the limit is ${bodyLimit(context)}`
    return refusal(message, "BodyTooLarge", detail, "Send a smaller body, or raise --max-msg-size of nsqd")
  }
  const wait = remaining(message, context)
  const defer = Math.min(wait, limits.maxReqTimeout)
  const publication = (payload: Buffer): Publication => ({ queue, topic: target.topic, payload, defer })
  const raw = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (envelope === "never" && !target.isOwn) {
    if (raw.length === 0)
      return refusal(message, "Unsupported", "nsqd takes no empty message", `Set envelope: "always"`)
    return publication(raw)
  }
  const parts = { ...message, deferred: defer > 0 && defer === wait ? defer : undefined }
  const size = Buffer.byteLength(Wire.json(parts))
  const enveloped = Wire.size(size, raw.length)
  if (size <= Wire.jsonLimit && enveloped <= limits.maxMsgSize) return publication(Wire.encode(parts))
  // A foreign message of the largest size has no room for an envelope. It is kept as a dead letter without its history.
  if (isCopy && raw.length > 0 && raw.length <= limits.maxMsgSize) return publication(raw)
  const detail = `body and headers have ${enveloped} bytes with their envelope, the limit is ${limits.maxMsgSize}, and ${Wire.jsonLimit} for headers`
  return refusal(message, "BodyTooLarge", detail, "Send less in headers, or raise --max-msg-size of nsqd")
}

/** Whether a message is within the limits with its envelope. */
export const fits = (
  { body, headers, metadata }: Outgoing.Outgoing,
  { maxMsgSize }: Pick<Limits, "maxMsgSize">
): boolean => {
  const size = Buffer.byteLength(Wire.json({ headers, metadata, deferred: Number.MAX_SAFE_INTEGER }))
  return size <= Wire.jsonLimit && Wire.size(size, body.length) <= maxMsgSize
}

/** Whole milliseconds until the message is due. Time in which it waited for a connection counts. */
const remaining = ({ delay, metadata }: Outgoing.Outgoing, { now }: PublicationContext): number => {
  if (delay === 0) return 0
  const left = metadata.notBefore === 0 ? delay : Math.min(delay, metadata.notBefore - now)
  return Math.max(1, Math.ceil(left))
}
