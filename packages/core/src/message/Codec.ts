/**
 * How a body becomes bytes and back. Bytes, text, JSON, or JSON checked by a schema.
 *
 * A body that cannot be decoded is dead-lettered at once with its original bytes; the handler never sees it.
 */
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Headers } from "./Message.ts"

export interface Codec<in out A> {
  /** The media type, sent as the `content-type` header; `undefined` sends none. */
  readonly contentType: string | undefined
  /** Throws when the value cannot be encoded. */
  readonly encode: (value: A) => Uint8Array
  /** Throws, or rejects, when the bytes are not an `A`. */
  readonly decode: (bytes: Uint8Array, headers: Headers) => A | Promise<A>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })
// A byte order mark is part of a text, and no part of JSON.
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Small copies share an ArrayBuffer: making one for each takes longer than all the rest that a consumer does for a
 * message. Large enough that making it counts for nothing, small enough that a body which is kept keeps little else.
 */
const slabSize = 8192
const largestShared = slabSize / 8
let slab = new Uint8Array(slabSize)
let used = 0

/** A plain Uint8Array, also of a Node Buffer, whose `slice` would be a view. */
const copy = (source: Uint8Array): Uint8Array => {
  if (source.length > largestShared) return new Uint8Array(source)
  if (used + source.length > slabSize) {
    slab = new Uint8Array(slabSize)
    used = 0
  }
  const copied = new Uint8Array(slab.buffer, used, source.length)
  copied.set(source)
  used += source.length
  return copied
}

/**
 * The bytes themselves; copied, so that neither side sees what the other does to its buffer later. Like Node's small
 * Buffers, small bodies are views of a larger `buffer`.
 */
export const bytes: Codec<Uint8Array> = {
  contentType: "application/octet-stream",
  encode: copy,
  decode: copy
}

/** UTF-8 text; bytes that are no UTF-8 are undecodable. */
export const text: Codec<string> = {
  contentType: "text/plain; charset=utf-8",
  encode: (value) => encoder.encode(value),
  decode: (value) => textDecoder.decode(value)
}

/** Any JSON value, unchecked. The default. */
export const json: Codec<any> = {
  contentType: "application/json",
  encode: (value) => {
    const rendered = JSON.stringify(value)
    if (rendered === undefined) throw new TypeError(`Codec.json: ${typeof value} has no JSON form`)
    return encoder.encode(rendered)
  },
  decode: (value) => JSON.parse(decoder.decode(value))
}

/**
 * JSON, checked after reading by any Standard Schema (zod, valibot, arktype, Effect's `Schema.toStandardSchemaV1`, …).
 * What the schema's output looks like is what the handler gets; sending is not checked, since such a schema cannot be
 * run backwards. For an Effect schema, `SchemaCodec` does both ways.
 *
 * @example
 * ```ts
 * import { Codec } from "@requeue/core"
 * import { Schema } from "effect"
 *
 * const codec = Codec.standard(Schema.toStandardSchemaV1(Schema.Struct({ url: Schema.String })))
 * codec.decode(codec.encode({ url: "https://example.com" }), {}) // => { url: "https://example.com" }
 * ```
 */
export const standard = <A>(schema: StandardSchemaV1<any, A>): Codec<A> => {
  const read = (result: StandardSchemaV1.Result<A>): A => {
    if (result.issues === undefined) return result.value
    throw new TypeError(result.issues.map(renderIssue).join("; "))
  }
  return {
    ...json,
    decode: (value, headers) => {
      const result = schema["~standard"].validate(json.decode(value, headers))
      return result instanceof Promise ? result.then(read) : read(result)
    }
  }
}

const renderIssue = ({ message, path }: StandardSchemaV1.Issue): string => {
  const at = (path ?? []).map((segment) => String(typeof segment === "object" ? segment.key : segment)).join(".")
  return at === "" ? message : `${at}: ${message}`
}
