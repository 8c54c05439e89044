/**
 * Codecs turn a body into bytes and back. There are codecs for bytes, text, JSON, and JSON that a schema checks.
 *
 * A message whose body cannot be decoded is dead-lettered at once with its original bytes; no handler sees it. If a
 * codec cannot decode yet, because a service that it uses does not answer, it must throw an error with `permanent:
 * false`. Then the attempt counts as failed, and the retry policy decides.
 */
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { copy, isSeparate } from "./OwnBytes.ts"
import * as Losses from "./internal/losses.ts"
import * as Standard from "./internal/standard.ts"
import * as Thenable from "./Thenable.ts"
import * as OptionNames from "../options/OptionNames.ts"
import type { Headers, Native } from "./Message.ts"

/**
 * Encodes and decodes bodies. A handler gets a body of type `A`, and a sender passes a body of type `I`. The types
 * differ if a schema transforms bodies.
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 *
 * const date: Codec.Codec<Date> = {
 *   contentType: Codec.text.contentType,
 *   encode: (value) => Codec.text.encode(value.toISOString()),
 *   decode: async (bytes, headers) => new Date(await Codec.text.decode(bytes, headers))
 * }
 * const birthdays = QueueDefinition.make("birthdays", { codec: date })
 * ```
 */
export interface Codec<out A, in I = A> {
  /** The media type, sent as the `content-type` header; `undefined` sends none. */
  readonly contentType: string | undefined
  /** The encoding of the bytes, such as `gzip`, sent as the `content-encoding` header. Default: none is sent. */
  readonly contentEncoding?: string | undefined
  /** Encodes a body. If it throws, `send` fails with an `EncodeError`. The result may share the body's bytes. */
  readonly encode: (value: I) => Uint8Array
  /**
   * Decodes a body. The result may keep the bytes, which are a copy. If the bytes are not an `A`, the codec throws or
   * rejects, and the message is dead-lettered. If that error or one of its causes has `permanent: false`, or a promise
   * takes more than 30 seconds (`DecodeTimeout`), the attempt counts as failed and the retry policy decides.
   */
  readonly decode: (bytes: Uint8Array, headers: Headers) => A | Promise<A>
  /**
   * Decodes a body together with the headers that its handler sees. A consumer calls it instead of `decode`, under the
   * same rules. Use it if the body contains headers, as an envelope does. Retries and dead letters keep the original
   * headers and bytes. A codec that spreads another codec and replaces `decode` must also replace `decodeMessage`.
   * Default: `decode`, with the message's headers.
   */
  readonly decodeMessage?:
    | ((bytes: Uint8Array, headers: Headers) => DecodedMessage<A> | Promise<DecodedMessage<A>>)
    | undefined
  /**
   * Encodes a body together with the headers and native options of its message. A send calls it instead of `encode`,
   * under the same rules. Use it to add headers or native options, or to store data elsewhere before the message is
   * sent. A promise must end within the send's `publishTimeout`. A codec that spreads another codec and replaces
   * `encode` must also replace `encodeMessage`. Default: `encode` alone.
   */
  readonly encodeMessage?: ((body: I, given: MessageParts) => EncodedMessage | Promise<EncodedMessage>) | undefined
}

/** A message without its body. */
export interface MessageParts {
  readonly headers: Headers
  /** The program's options for single brokers; `undefined` if there are none. */
  readonly native: Native | undefined
}

/** A message as it is sent. */
export interface EncodedMessage extends MessageParts {
  readonly body: Uint8Array
}

/** A body with the headers that its handler sees. */
export interface DecodedMessage<out A> {
  readonly body: A
  readonly headers: Headers
}

/**
 * Encodes a body and headers with any codec.
 *
 * When to use: in a codec that wraps another one.
 */
export const encodeMessage = <I>(
  codec: Codec<unknown, I>,
  body: I,
  given: MessageParts
): EncodedMessage | Promise<EncodedMessage> =>
  codec.encodeMessage === undefined ? { ...given, body: codec.encode(body) } : codec.encodeMessage(body, given)

/**
 * Decodes a body and headers with any codec.
 *
 * When to use: in a codec that wraps another one, so headers that the inner codec finds are not lost.
 */
export const decodeMessage = <A>(
  codec: Codec<A, never>,
  bytes: Uint8Array,
  headers: Headers
): DecodedMessage<A> | Promise<DecodedMessage<A>> => {
  if (codec.decodeMessage !== undefined) return codec.decodeMessage(bytes, headers)
  return Thenable.map(codec.decode(bytes, headers), (body) => ({ body, headers }))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })
// A byte order mark is part of text, but not of JSON.
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * The codec of bodies that are bytes. It copies them, so neither side sees later changes by the other. Like Node's
 * small Buffers, bodies of up to 1,024 bytes are views of a larger `buffer`.
 */
export const bytes: Codec<Uint8Array> = isSeparate({
  contentType: "application/octet-stream",
  encode: copy,
  decode: copy
})

/** The codec of UTF-8 text. Bytes that are not valid UTF-8 are undecodable. */
export const text: Codec<string> = isSeparate({
  contentType: "text/plain; charset=utf-8",
  encode: (value) => encoder.encode(value),
  decode: (value) => textDecoder.decode(value)
})

/** An error whose `remedy` is that of the send's `EncodeError`. */
const refused = ({ detail, remedy }: Losses.Refusal): TypeError => Object.assign(new TypeError(detail), { remedy })

const stringify = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch (error) {
    const found = Losses.findRefusal(value)
    throw found === undefined ? error : refused(found)
  }
}

/**
 * The codec of JSON values, without checks: the default of every queue. It cannot encode `undefined`, functions,
 * symbols, a `bigint` or a cycle. Inside a body, JSON silently changes some values: a Map, a Set and an Error become
 * `{}`, NaN becomes null, and functions are left out. A producer logs the first such value with its path, once for each
 * queue.
 */
// Any, because the program decides the type of an unchecked body.
export const json: Codec<any> = isSeparate({
  contentType: "application/json",
  encode: (value) => {
    const rendered = stringify(value)
    if (rendered === undefined) {
      const got = value === undefined ? "undefined" : `a ${typeof value}`
      throw refused({ detail: `body is ${got}, which has no JSON form`, remedy: "Send null, or an object" })
    }
    Losses.report(value)
    return encoder.encode(rendered)
  },
  decode: (value) => JSON.parse(decoder.decode(value))
})

/**
 * Makes a codec of JSON that a Standard Schema (zod, valibot, arktype, Effect's `Schema.toStandardSchemaV1`, …) checks
 * when a message is sent and when it is read. The sender passes the schema's input, and the handler gets its output:
 * the schema transforms when the message is read. A send checks the JSON that the reader will get. A schema of dates
 * therefore refuses a `Date`, which would arrive as text. https://standardschema.dev
 *
 * If a body does not fit the schema, the error `InvalidBody` names the path. A send then sends nothing, and a received
 * message is dead-lettered at once. An asynchronous schema has 30 seconds to read, and the send's `publishTimeout` to
 * send. For an Effect schema, `SchemaCodec` also carries values that JSON lacks.
 *
 * @throws RangeError when `schema` is not a Standard Schema of version 1
 *
 * @example
 * ```ts
 * import { Codec } from "@requeue/core"
 * import * as z from "zod"
 *
 * const codec = Codec.standard(z.object({ placedAt: z.iso.datetime().transform((text) => new Date(text)) }))
 * const bytes = codec.encode({ placedAt: "2026-01-01T00:00:00Z" })
 * codec.decode(bytes, {}) // => { placedAt: new Date(Date.UTC(2026, 0)) }
 * ```
 */
export const standard = <A, I = unknown>(schema: StandardSchemaV1<I, A>): Codec<A, I> => {
  OptionNames.orThrow(OptionNames.argument("standard", "schema", schema, Standard.kind))
  const decode = (bytes: Uint8Array, headers: Headers) => Standard.validate(schema, json.decode(bytes, headers))
  return isSeparate({
    contentType: json.contentType,
    encode: (value) => {
      const encoded = json.encode(value)
      const decoded = decode(encoded, {})
      if (!Thenable.is(decoded)) return encoded
      decoded.then(undefined, () => {})
      throw new TypeError("standard: an asynchronous schema takes time. Call encodeMessage instead of encode")
    },
    decode,
    encodeMessage: (value, given) => {
      const sealed = { ...given, body: json.encode(value) }
      return Thenable.map(decode(sealed.body, given.headers), () => sealed)
    }
  })
}
