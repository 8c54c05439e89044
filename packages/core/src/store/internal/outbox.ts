/**
 * Messages in an outbox: a queue of the store, whose messages name the queue of another broker. The body and the id are those of the
 * message. Its only header has the rest as JSON:
 *
 * | key | meaning |
 * | --- | --- |
 * | `queue` | where the relay publishes the message |
 * | `broker` | the kind of the broker, such as `rabbitmq`; if absent, each relay of the outbox publishes the message |
 * | `headers` | the headers of the message; absent when there are none |
 * | `key` | the key of the message; absent when it has none |
 * | `fairBy` | whose message it is; absent when the message does not say |
 * | `native` | the options of the message for single brokers; absent when there are none |
 * | `create` | `false` if a missing queue must not be created; otherwise absent |
 */
import { BrokerError } from "../../port/BrokerError.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import * as Feasibility from "../../port/Feasibility.ts"
import * as Losses from "../../message/internal/losses.ts"
import type { Received } from "../../message/Handler.ts"
import type { Headers, Native } from "../../message/Message.ts"
import * as Metadata from "../../message/Metadata.ts"
import type { Outgoing } from "../../message/Outgoing.ts"
import * as OptionKind from "../../options/OptionKind.ts"

const header = "requeue-outbox"

interface Address {
  readonly queue: string
  readonly broker?: string | undefined
  readonly headers?: Headers | undefined
  readonly key?: string | undefined
  readonly fairBy?: string | undefined
  readonly native?: Native | undefined
  readonly create?: false | undefined
}

/** Where a message waits, and for which kind of broker. */
export interface Waiting {
  readonly broker: string
  readonly outbox: string
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

/** Returns why a message cannot wait in the outbox of a store. */
export const refusal = (
  { native, place, queue }: Outgoing,
  { broker, outbox }: Waiting,
  store: Capabilities
): BrokerError | undefined => {
  const keyless = Feasibility.refusalOf({ place, queue: outbox }, store, "within")
  if (keyless !== undefined) return keyless
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
export const toOutbox = (
  { body, create, delay, fairBy, headers, metadata, native, place, queue: target }: Outgoing,
  { broker, outbox }: Waiting
): Outgoing => {
  const address: Address = {
    queue: target,
    broker,
    headers: Object.keys(headers).length === 0 ? undefined : headers,
    key: place?.key,
    fairBy,
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

/** A message to publish, and the kind of its broker. */
export interface Addressed {
  readonly broker: string
  readonly outgoing: Outgoing
}

/** Returns the message of the broker, by default of the kind `relay`; `undefined` if the message does not name a queue. */
export const fromOutbox = (
  { body, headers, id, timestamp }: Received<Uint8Array>,
  relay: string
): Addressed | undefined => {
  const address = addressOf(headers[header])
  if (address === undefined) return undefined
  const { broker = relay, create, fairBy, headers: own = {}, key, native, queue } = address
  const place = key === undefined ? undefined : { key, queue }
  const metadata = Metadata.make(id, timestamp)
  return { broker, outgoing: { queue, body, headers: own, native, create, place, fairBy, delay: 0, metadata } }
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
    broker = "",
    fairBy,
    headers = {},
    key,
    native = {},
    queue
  }: { readonly [K in keyof Address]?: unknown } = value
  const isText = OptionKind.isObject(headers) && Object.values(headers).every((each) => typeof each === "string")
  const isNamed = typeof queue === "string" && queue !== "" && typeof broker === "string"
  const isKnown = [fairBy, key].every((each) => each === undefined || Metadata.problemOfId(each) === undefined)
  return isNamed && isKnown && isText && OptionKind.isObject(native)
}
