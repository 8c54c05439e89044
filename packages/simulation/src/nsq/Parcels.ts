/** Messages of nsqd in the world's terms. docs/nsq.md describes the envelope. */
import { Metadata } from "@requeue/core/port"
import type { Parcel } from "../world/Parcel.ts"

const magic = Buffer.from([0, 0x52, 0x4b, 1])

/** The message in these bytes. */
export const read = (bytes: Buffer): Parcel => {
  if (bytes.length < 6 || bytes.compare(magic, 0, 4, 0, 4) !== 0) {
    return { body: bytes, headers: {}, metadata: undefined }
  }
  const end = 6 + bytes.readUInt16BE(4)
  // Cast, because only the adapter and this file write envelopes.
  const { h: headers = {}, m } = JSON.parse(bytes.toString("utf8", 6, end)) as {
    readonly m: unknown
    readonly h?: Parcel["headers"]
  }
  return { body: bytes.subarray(end), headers, metadata: JSON.stringify(m) }
}

/** The bytes of a foreign producer's message. One without metadata has no envelope, and so no headers. */
export const write = ({ body, headers, metadata }: Parcel): Buffer => {
  if (metadata === undefined || Metadata.decode(metadata) === undefined) return Buffer.from(body)
  const json = Buffer.from(`{"m":${metadata},"h":${JSON.stringify(headers)}}`)
  const size = Buffer.alloc(2)
  size.writeUInt16BE(json.length)
  return Buffer.concat([magic, size, json, body])
}
