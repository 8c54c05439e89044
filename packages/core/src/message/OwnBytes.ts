/** Bytes that are not shared: copies, and codecs that share no bytes with a sender, a handler or a broker. */
import type { Headers, Native } from "./Message.ts"

/**
 * Small copies share an ArrayBuffer of this many bytes, because one for each copy would cost more than all other work for a
 * message. In a larger one, a single kept body would hold more memory.
 */
const slabSize = 8192
const largestShared = slabSize / 8
let slab = new Uint8Array(slabSize)
let used = 0

/** Copies bytes to a plain Uint8Array. `slice` does not: on a Node Buffer, it makes a view. */
export const copy = (source: Uint8Array): Uint8Array => {
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

/** A codec, as `Codec` declares it. */
interface Coding<out A, in I = A> {
  readonly contentType: string | undefined
  readonly contentEncoding?: string | undefined
  readonly encode: (value: I) => Uint8Array
  readonly decode: (bytes: Uint8Array, headers: Headers) => A | Promise<A>
  readonly decodeMessage?:
    | ((bytes: Uint8Array, headers: Headers) => DecodedMessage<A> | Promise<DecodedMessage<A>>)
    | undefined
  readonly encodeMessage?: ((body: I, given: MessageParts) => EncodedMessage | Promise<EncodedMessage>) | undefined
}

interface MessageParts {
  readonly headers: Headers
  readonly native: Native | undefined
}

interface EncodedMessage extends MessageParts {
  readonly body: Uint8Array
}

interface DecodedMessage<out A> {
  readonly body: A
  readonly headers: Headers
}

const separate = new WeakSet<object>()

/** Marks a codec that returns new bytes and keeps none, so it needs no copies. */
export const isSeparate = <C extends object>(codec: C): C => {
  separate.add(codec)
  return codec
}

const guards = new WeakMap<object, Coding<any, any>>() // Any, because each guard is of its codec's type.

/**
 * Returns a codec that copies the bytes which the given codec gets and returns, unless {@link isSeparate} marks that
 * codec.
 */
export const guard = <A, I>(codec: Coding<A, I>): Coding<A, I> => {
  if (separate.has(codec)) return codec
  const known = guards.get(codec)
  if (known !== undefined) return known
  const made = isSeparate<Coding<A, I>>({
    contentType: codec.contentType,
    contentEncoding: codec.contentEncoding,
    encode: (value) => copy(verified(codec.encode(value))),
    decode: (bytes, headers) => codec.decode(copy(bytes), headers),
    decodeMessage: codec.decodeMessage && ((bytes, headers) => codec.decodeMessage!(copy(bytes), headers)),
    encodeMessage: codec.encodeMessage && (async (body, given) => separated(await codec.encodeMessage!(body, given)))
  })
  guards.set(codec, made)
  return made
}

const separated = (sealed: EncodedMessage): EncodedMessage => ({ ...sealed, body: copy(verified(sealed.body)) })

/** By tag, since bytes may come from another realm. */
const verified = (bytes: unknown): Uint8Array => {
  const tag = ArrayBuffer.isView(bytes) ? Reflect.get(bytes, Symbol.toStringTag) : typeof bytes
  if (tag === "Uint8Array") return bytes as Uint8Array // By its tag.
  const error = new TypeError(
    `codec.encode must return a Uint8Array, got ${bytes instanceof Promise ? "a promise" : String(tag)}`
  )
  if (!(bytes instanceof Promise)) throw error
  bytes.catch(() => {}) // It is not awaited.
  throw Object.assign(error, { remedy: "Make encode return bytes synchronously, or write an async encodeMessage" })
}
