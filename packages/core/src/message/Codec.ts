/**
 * Codecs: a codec turns a body into bytes and back. There are codecs for bytes, text, JSON, and JSON that a schema checks.
 *
 * A message whose body cannot be decoded is dead-lettered at once with its original bytes; no handler sees it. A codec
 * that cannot tell yet, because what it asks does not answer, throws an error with `permanent: false`: then the attempt
 * counts as failed, and the retry policy decides.
 */
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { copy, isSeparate } from "./OwnBytes.ts"
import * as Losses from "./internal/losses.ts"
import * as Standard from "./internal/standard.ts"
import * as Thenable from "./Thenable.ts"
import * as OptionNames from "../options/OptionNames.ts"
import type { Headers, Native } from "./Message.ts"

/**
 * A way to write bodies as bytes. `A` is what a handler gets, `I` what a sender gives; they differ where a schema transforms.
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
  /**
   * Encodes a body. It throws when the value cannot be encoded; `send` then fails with an `EncodeError`. The bytes may be
   * those of the body: they are copied.
   */
  readonly encode: (value: I) => Uint8Array
  /**
   * Decodes a body, which may keep the bytes: they are a copy. It throws, or rejects, when the bytes are not an `A`. A
   * promise has 30 seconds; after that the attempt counts as failed with a `DecodeTimeout`, and the retry policy decides.
   * So it is with an error that has `permanent: false`, in itself or in its `cause` chain.
   */
  readonly decode: (bytes: Uint8Array, headers: Headers) => A | Promise<A>
  /**
   * Decodes a body together with the headers that its handler sees, on the terms of `decode`, in whose place a consumer
   * calls it. For a codec that finds headers in the body, as one of an envelope. Copies of the message keep its own headers
   * and bytes. A codec that spreads another one and replaces its `decode` replaces this as well. Default: the headers are
   * the message's own.
   */
  readonly decodeMessage?:
    | ((bytes: Uint8Array, headers: Headers) => DecodedMessage<A> | Promise<DecodedMessage<A>>)
    | undefined
  /**
   * Encodes a body together with the headers and wishes of its message, on the terms of `encode`, in whose place a send
   * calls it. For a codec that adds some, or that needs time: what it puts elsewhere is there before the message. A promise
   * has the send's `publishTimeout`. Whoever replaces `encode` replaces this as well. Default: `encode` alone.
   */
  readonly encodeMessage?: ((body: I, given: MessageParts) => EncodedMessage | Promise<EncodedMessage>) | undefined
}

/** The part of a message that is not its body. */
export interface MessageParts {
  readonly headers: Headers
  /** The program's wishes to brokers; `undefined` for none. */
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
 * Seals a body with any codec.
 *
 * When to use: in a codec around another one, as {@link decodeMessage}.
 *
 * @example
 * ```ts
 * import { Codec } from "@requeue/core"
 *
 * const given = { headers: { from: "me" }, native: undefined }
 * Codec.encodeMessage(Codec.text, "", given) // => { body: new Uint8Array(), headers: { from: "me" }, native: undefined }
 * ```
 */
export const encodeMessage = <I>(
  codec: Codec<unknown, I>,
  body: I,
  given: MessageParts
): EncodedMessage | Promise<EncodedMessage> =>
  codec.encodeMessage === undefined ? { ...given, body: codec.encode(body) } : codec.encodeMessage(body, given)

/**
 * Opens a body with any codec.
 *
 * When to use: in a codec around another one, so that the headers which that one finds are not lost.
 *
 * @example
 * ```ts
 * import { Codec } from "@requeue/core"
 *
 * Codec.decodeMessage(Codec.text, new Uint8Array([104, 105]), { from: "me" }) // => { body: "hi", headers: { from: "me" } }
 * ```
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
// A byte order mark is part of a text, and no part of JSON.
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Bodies that are bytes already. They are copied, so that neither side sees later changes to the other's buffer. Like
 * Node's small Buffers, bodies of up to 1,024 bytes are views of a larger `buffer`.
 */
export const bytes: Codec<Uint8Array> = isSeparate({
  contentType: "application/octet-stream",
  encode: copy,
  decode: copy
})

/** UTF-8 text. Bytes that are not valid UTF-8 are undecodable. */
export const text: Codec<string> = isSeparate({
  contentType: "text/plain; charset=utf-8",
  encode: (value) => encoder.encode(value),
  decode: (value) => textDecoder.decode(value)
})

/**
 * Any JSON value, unchecked: the default of every queue. It cannot encode `undefined`, functions, symbols, a `bigint` or
 * a cycle. Inside a body, JSON changes some values without an error: a Map, a Set and an Error become `{}`, NaN becomes null,
 * and functions are left out. A producer logs the first of these with its place, once for each queue.
 */
// Any, because the type of an unchecked body is whatever the program says it is.
export const json: Codec<any> = isSeparate({
  contentType: "application/json",
  encode: (value) => {
    const rendered = JSON.stringify(value)
    if (rendered === undefined) throw new TypeError(`Codec.json: ${typeof value} has no JSON form`)
    Losses.report(value)
    return encoder.encode(rendered)
  },
  decode: (value) => JSON.parse(decoder.decode(value))
})

/**
 * JSON that a Standard Schema (zod, valibot, arktype, Effect's `Schema.toStandardSchemaV1`, …) checks on both sides. What is
 * sent is the schema's input, and the handler gets its output: a schema that transforms does so when the message is read.
 * What is checked before a send is the JSON, as its reader will have it, so that a schema of dates refuses a `Date`: it would
 * be text there. https://standardschema.dev
 *
 * A body that does not fit is an `InvalidBody`, which names the place: nothing is sent, and a message that is read is
 * dead-lettered at once. A schema may be asynchronous: it has 30 seconds to read, and the send's `publishTimeout` before that.
 * For an Effect schema, `SchemaCodec` carries what JSON lacks.
 *
 * @throws RangeError when it is no Standard Schema of version 1
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
  OptionNames.orThrow(OptionNames.argument("Codec.standard", "schema", schema, Standard.kind))
  const decode = (bytes: Uint8Array, headers: Headers) => Standard.validate(schema, json.decode(bytes, headers))
  return isSeparate({
    contentType: json.contentType,
    encode: (value) => {
      const encoded = json.encode(value)
      const decoded = decode(encoded, {})
      if (!Thenable.is(decoded)) return encoded
      decoded.then(undefined, () => {})
      throw new TypeError("Codec.standard: an asynchronous schema takes time. Call encodeMessage in place of encode")
    },
    decode,
    encodeMessage: (value, given) => {
      const sealed = { ...given, body: json.encode(value) }
      return Thenable.map(decode(sealed.body, given.headers), () => sealed)
    }
  })
}
