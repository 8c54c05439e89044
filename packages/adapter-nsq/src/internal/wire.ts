/**
 * The envelope of a message: metadata and headers in front of the body, because NSQ has no headers. Pure.
 *
 * | bytes | |
 * | --- | --- |
 * | 4 | `0x00`, `R`, `K`, `0x01`, with which no text begins |
 * | 2 | length of the JSON in bytes, unsigned, big-endian |
 * | n | JSON in UTF-8: `m` metadata, `h` headers, `d` milliseconds for which nsqd was to hold back this copy, `n` nonce of a message that was stored on two nsqd |
 * | rest | the body |
 *
 * Other bytes are the body of a foreign producer's message.
 */
import { type Message, Metadata } from "@requeue/core/port"
import * as Predicate from "effect/Predicate"

/** The parts of an enveloped message. */
export interface Envelope {
  readonly metadata: Metadata.Metadata
  readonly headers: Message.Headers
  /** Milliseconds for which nsqd must defer this copy; `undefined` unless it is then due. */
  readonly deferred: number | undefined
  /** Identifies both copies of a message that is stored on two nsqd; `undefined` for all others. */
  readonly nonce: string | undefined
  readonly body: Uint8Array
}

const magic = Buffer.from([0x00, 0x52, 0x4b, 0x01])
const start = magic.length + 2

/** The longest JSON, in bytes. */
export const jsonLimit = 0xffff

/** Returns the bytes reserved for metadata and headers: at most half of the largest message. */
export const reserve = (maxMsgSize: number): number => Math.min(4096, Math.floor(maxMsgSize / 2))

/** Encodes everything except the body as JSON. */
export const json = ({ deferred, headers, metadata, nonce }: Omit<Envelope, "body">): string => {
  const named = headersJson(headers)
  const held = deferred === undefined ? "" : `,"d":${deferred}`
  return `{"m":${Metadata.encode(metadata)}${named}${held}${nonce === undefined ? "" : `,"n":${JSON.stringify(nonce)}`}}`
}

const headersJson = (headers: Message.Headers): string => {
  const text = JSON.stringify(headers)
  return text === "{}" ? "" : `,"h":${text}`
}

/** Returns the size of an envelope, from the sizes of its JSON and body in bytes. */
export const size = (json: number, body: number): number => start + json + body

/**
 * Encodes an envelope. `text` is the result of `json`, if already computed.
 *
 * @throws RangeError when metadata and headers have more than `jsonLimit` bytes
 */
export const encode = (envelope: Envelope, text = json(envelope)): Buffer => {
  const { body } = envelope
  const length = Buffer.byteLength(text)
  if (length > jsonLimit) throw new RangeError(`Wire.encode: ${length} bytes of headers, at most ${jsonLimit}`)
  const bytes = Buffer.allocUnsafe(size(length, body.length))
  magic.copy(bytes)
  bytes.writeUInt16BE(length, magic.length)
  bytes.write(text, start, "utf8")
  bytes.set(body, start + length)
  return bytes
}

/**
 * Decodes an envelope; `undefined` for a foreign message. `stored` is when nsqd stored it, in milliseconds since the
 * epoch by nsqd's clock, if known.
 */
export const decode = (bytes: Buffer, stored?: number): Envelope | undefined => {
  if (bytes.length < start || bytes.compare(magic, 0, magic.length, 0, magic.length) !== 0) return undefined
  const end = start + bytes.readUInt16BE(magic.length)
  if (bytes.length < end) return undefined
  const parsed = parse(bytes.subarray(start, end))
  const metadata = Metadata.fromJson(parsed?.["m"], stored)
  const headers = headersIn(parsed?.["h"])
  if (parsed === undefined || metadata === undefined || headers === undefined) return undefined
  const { d: deferred, n: nonce } = parsed
  return {
    metadata,
    headers,
    deferred: typeof deferred === "number" ? deferred : undefined,
    nonce: typeof nonce === "string" ? nonce : undefined,
    body: bytes.subarray(end)
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const parse = (json: Buffer): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(decoder.decode(json))
    return Predicate.isReadonlyObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The headers of a message without headers. */
export const noHeaders: Message.Headers = Object.freeze({})

/**
 * Returns the headers as text, whatever their type; `undefined` if they are not an object. Handlers and later copies
 * see them.
 */
const headersIn = (value: unknown): Message.Headers | undefined => {
  if (value === undefined) return noHeaders
  if (!Predicate.isReadonlyObject(value)) return undefined
  const entries = Object.entries(value)
  return Object.freeze(
    Object.fromEntries(entries.map(([name, each]) => [name, typeof each === "string" ? each : JSON.stringify(each)]))
  )
}
