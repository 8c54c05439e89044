/** From an outgoing message to what nsqd gets. Pure. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import * as Envelope from "../wire.ts"
import type { Limits } from "../limits.ts"
import type { Queue } from "../names.ts"
import type { Publication } from "./publisher.ts"

export interface Context {
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

/** The largest body of a first publish. */
const bodyLimit = ({ limits: { maxMsgSize }, envelope }: Context): number =>
  envelope === "never" ? maxMsgSize : maxMsgSize - Envelope.reserve

export const toPublication = (
  {
    isCopy,
    message,
    target
  }: { readonly message: Outgoing.Outgoing; readonly target: Queue; readonly isCopy: boolean },
  context: Context
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
  const size = Buffer.byteLength(Envelope.json(parts))
  const enveloped = Envelope.size(size, raw.length)
  if (size <= Envelope.jsonLimit && enveloped <= limits.maxMsgSize) return publication(Envelope.encode(parts))
  // A foreign message of the largest size leaves no room: better a dead letter without its story than none.
  if (isCopy && raw.length > 0 && raw.length <= limits.maxMsgSize) return publication(raw)
  const detail = `body and headers have ${enveloped} bytes with their envelope, the limit is ${limits.maxMsgSize}, and ${Envelope.jsonLimit} for headers`
  return refusal(message, "BodyTooLarge", detail, "Send less in headers, or raise --max-msg-size of nsqd")
}

/** Whether the message is within the limits with all that it should carry. */
export const fits = (
  { body, headers, metadata }: Outgoing.Outgoing,
  { maxMsgSize }: Pick<Limits, "maxMsgSize">
): boolean => {
  const size = Buffer.byteLength(Envelope.json({ headers, metadata, deferred: Number.MAX_SAFE_INTEGER }))
  return size <= Envelope.jsonLimit && Envelope.size(size, body.length) <= maxMsgSize
}

/** Milliseconds until it is due, as nsqd takes them; what waiting for a connection took is not waited for once more. */
const remaining = ({ delay, metadata }: Outgoing.Outgoing, { now }: Context): number => {
  if (delay === 0) return 0
  const left = metadata.notBefore === 0 ? delay : Math.min(delay, metadata.notBefore - now)
  return Math.max(1, Math.ceil(left))
}
