/**
 * Messages in an outbox: a queue of the store, whose messages name the queue of another broker. The body and the id are those of the
 * message. Its only header has the rest as JSON:
 *
 * | key | meaning |
 * | --- | --- |
 * | `queue` | where the relay publishes the message |
 * | `headers` | the headers of the message; absent when there are none |
 * | `key` | the key of the message; absent when it has none |
 * | `native` | the options of the message for single brokers; absent when there are none |
 * | `create` | `false` if a missing queue must not be created; otherwise absent |
 */
import { BrokerError, withoutKeys } from "../../port/BrokerError.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import * as Losses from "../../message/internal/losses.ts"
import type { Received } from "../../message/Handler.ts"
import type { Headers, Native } from "../../message/Message.ts"
import * as Metadata from "../../message/Metadata.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import { outbox } from "../../port/Inbox.ts"
import * as OptionKind from "../../options/OptionKind.ts"

const header = "requeue-outbox"

interface Address {
  readonly queue: string
  readonly headers?: Headers | undefined
  readonly key?: string | undefined
  readonly native?: Native | undefined
  readonly create?: false | undefined
}

const unsupported = (broker: string, target: string, detail: string): BrokerError =>
  new BrokerError({
    broker,
    operation: "within",
    queue: target,
    reason: "Unsupported",
    detail,
    remedy: "Send it without within, or leave that option out"
  })

/** Returns why a message cannot wait in the outbox of a store. `broker` is the name of its broker. */
export const refusal = (
  { native, place, queue }: Outgoing,
  broker: string,
  store: Capabilities
): BrokerError | undefined => {
  if (place !== undefined && store.keyedOrder !== true) return withoutKeys(store, outbox, "within")
  const cause = native && (Losses.findRefusal(native)?.detail ?? lossIn(native))
  if (cause === undefined) return undefined
  const detail = `an outbox stores native options as JSON: ${cause.replace("body", "native")}`
  return unsupported(broker, queue, detail)
}

const lossIn = (native: Native): string | undefined => {
  const loss = Losses.find(native)
  return loss && `${loss.path} is ${loss.detail}`
}

/**
 * Returns the message of the outbox for a message of the broker. It waits for the delay there. Its key is that of the message and its
 * queue, so messages of a key leave the outbox in order.
 */
export const toOutbox = ({
  body,
  create,
  delay,
  headers,
  metadata,
  native,
  place,
  queue: target
}: Outgoing): Outgoing => {
  const address: Address = {
    queue: target,
    headers: Object.keys(headers).length === 0 ? undefined : headers,
    key: place?.key,
    native,
    create: create === false ? false : undefined
  }
  return {
    queue: outbox,
    body,
    headers: { [header]: JSON.stringify(address) },
    ...(place === undefined ? undefined : { place: { key: `${target}/${place.key}`, queue: outbox } }),
    delay,
    metadata
  }
}

/** Returns the message of the broker; `undefined` if the message does not name a queue. */
export const fromOutbox = ({ body, headers, id, timestamp }: Received<Uint8Array>): Outgoing | undefined => {
  const address = addressOf(headers[header])
  return (
    address && {
      queue: address.queue,
      body,
      headers: address.headers ?? {},
      native: address.native,
      create: address.create,
      place: address.key === undefined ? undefined : { key: address.key, queue: address.queue },
      delay: 0,
      metadata: Metadata.make(id, timestamp)
    }
  )
}

const addressOf = (text: string | undefined): Address | undefined => {
  try {
    const address: unknown = JSON.parse(text ?? "")
    return isAddress(address) ? address : undefined
  } catch {
    return undefined
  }
}

const isAddress = (value: unknown): value is Address => {
  if (!OptionKind.isObject(value)) return false
  const {
    headers = {},
    key = "",
    native = {},
    queue
  }: { readonly headers?: unknown; readonly key?: unknown; readonly native?: unknown; readonly queue?: unknown } = value
  const isText = OptionKind.isObject(headers) && Object.values(headers).every((each) => typeof each === "string")
  return typeof queue === "string" && queue !== "" && typeof key === "string" && isText && OptionKind.isObject(native)
}
