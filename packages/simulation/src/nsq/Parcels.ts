/** Messages of nsqd in the world's terms. docs/nsq.md describes the envelope. */
import { Metadata } from "@requeue/core/port"
import type { Delivery } from "../History.ts"
import type { Parcel } from "../world/Parcel.ts"

const magic = Buffer.from([0, 0x52, 0x4b, 1])

interface Envelope {
  readonly json: { readonly m: unknown; readonly h?: Parcel["headers"] }
  readonly body: Buffer
}

const opened = (bytes: Buffer): Envelope | undefined => {
  if (bytes.length < 6 || bytes.compare(magic, 0, 4, 0, 4) !== 0) return undefined
  const end = 6 + bytes.readUInt16BE(4)
  // Cast, because only the adapter and this file write envelopes.
  const json = JSON.parse(bytes.toString("utf8", 6, end)) as Envelope["json"]
  return { json, body: bytes.subarray(end) }
}

const closed = ({ body, json }: { readonly json: string; readonly body: Uint8Array }): Buffer => {
  const text = Buffer.from(json)
  const size = Buffer.alloc(2)
  size.writeUInt16BE(text.length)
  return Buffer.concat([magic, size, text, body])
}

/** The message in these bytes. */
export const read = (bytes: Buffer): Parcel => {
  const envelope = opened(bytes)
  if (envelope === undefined) return { body: bytes, headers: {}, metadata: undefined }
  const { body, json } = envelope
  return { body, headers: json.h ?? {}, metadata: JSON.stringify(json.m) }
}

/** The header with the number of a delivery, which its copies keep. */
const deliveryHeader = "delivery"

/** Adds its number to a message that is delivered. A message without an envelope has no headers. */
export const numbered = (bytes: Buffer, delivery: Delivery): Buffer => {
  const envelope = opened(bytes)
  if (envelope === undefined) return bytes
  const { body, json } = envelope
  return closed({ body, json: JSON.stringify({ ...json, h: { ...json.h, [deliveryHeader]: String(delivery) } }) })
}

/** The delivery that a copy was made of; `undefined` for a send, and for the copy of a message without an envelope. */
export const copied = ({ headers }: Parcel): Delivery | undefined => {
  const text = headers[deliveryHeader]
  return text === undefined ? undefined : Number(text)
}

/** The bytes of a foreign producer's message. One without metadata has no envelope, and so no headers. */
export const write = ({ body, headers, metadata }: Parcel): Buffer => {
  if (metadata === undefined || Metadata.decode(metadata) === undefined) return Buffer.from(body)
  return closed({ body, json: `{"m":${metadata},"h":${JSON.stringify(headers)}}` })
}
