/**
 * Claim checks: a codec that puts large bodies into a store, and sends a pointer instead.
 *
 * When to use: for bodies that are larger than the broker's limit, or that should not pass through the broker. Every reader
 * of the queue needs the codec and the store.
 *
 * The codec stores a body before its message is published, and never removes it: the message may be redelivered; retries,
 * dead letters and redrives are copies with the same pointer; and a topic may copy the pointer to several queues. Let the
 * store remove bodies that are older than any message or dead letter, for example by a lifecycle rule.
 */
import { Codec, type Message } from "@requeue/core"
import { OptionKind, OptionNames, OwnBytes, Thenable } from "@requeue/core/port"
import * as Data from "effect/Data"

/** A place for large bodies. Its errors are stored in dead letters, so they must not contain secrets. */
export interface Store {
  /** The store's name in errors, such as `s3://bucket`. */
  readonly name: string
  /** Stores bytes durably, and returns the key by which every reader can get them. */
  readonly put: (bytes: Uint8Array) => Promise<string>
  /** Returns the bytes of a key; `undefined` if they certainly do not exist. It must reject if that is uncertain. */
  readonly get: (key: string) => Promise<Uint8Array | undefined>
}

/** How a pointer is written into a message, and read from it. */
export interface Format {
  /**
   * Names of headers that mark a pointer. A message with any of them is a pointer. Handlers do not see these headers.
   */
  readonly markers: ReadonlyArray<string>
  /** Returns the pointer to a body of `size` bytes. The pointer has one of the marking headers. */
  readonly write: (key: string, size: number, given: Codec.MessageParts) => Codec.EncodedMessage
  /** Returns the key in a message that has a marking header. It throws if there is no key. */
  readonly read: (bytes: Uint8Array, headers: Message.Headers) => string
}

/** The error of a failed call of the store. A send has published nothing; a received message is retried. */
export class StoreError extends Data.TaggedError("StoreError")<{
  /** The call of the store that failed. */
  readonly operation: "put" | "get"
  /** The store's name. */
  readonly store: string
  /** The key of the body; `undefined` for `put`. */
  readonly key: string | undefined
  readonly cause: unknown
}> {
  readonly remedy = "Try again when the store is available, and give this program access to it"
  /** Whether no retry can help. It is true only if the store's error has `permanent: true`. */
  get permanent() {
    return Object(this.cause).permanent === true
  }
  override get message() {
    const { cause, key, operation, store } = this
    return `ClaimCheck: ${operation}${key === undefined ? "" : ` ${key}`} in ${store}: ${String(cause)}`
  }
}

/** The error of a key for which the store has no body. */
export class LostBodyError extends Data.TaggedError("LostBodyError")<{
  /** The store's name. */
  readonly store: string
  readonly key: string
  /** Whether no retry can help. */
  readonly permanent: boolean
}> {
  override get message() {
    return (
      `ClaimCheck: ${this.store} has no body under ${this.key}. ` +
      "Keep stored bodies for longer than messages and dead letters"
    )
  }
}

/** The error of a message that has a marking header, but is not a valid pointer. */
export class InvalidPointerError extends Data.TaggedError("InvalidPointerError")<{ readonly detail: string }> {
  override get message() {
    return `ClaimCheck: the message is not a valid pointer to a body: ${this.detail}`
  }
}

/** Options of {@link make}. */
export interface Options {
  /** The place for large bodies. */
  readonly store: Store
  /** The largest body that is not stored, in bytes as the inner codec encodes it, 0 or more. Default: 262,144. */
  readonly threshold?: number | undefined
  /**
   * How to treat a message whose body is not in the store: `dead-letter` dead-letters it at once as undecodable, `retry`
   * applies the retry policy, for an eventually consistent store. Default: `dead-letter`.
   */
  readonly lost?: "dead-letter" | "retry" | undefined
  /** The form of pointers. Default: JSON with the `key` and the `size`, under the header `requeue-claim`. */
  readonly format?: Format | undefined
}

const kinds: OptionNames.Of<Options> = {
  store: OptionKind.object("a store with name, put and get", "name", "put", "get"),
  threshold: OptionKind.whole(0),
  lost: OptionKind.oneOf(["dead-letter", "retry"]),
  format: OptionKind.object("a format with markers, write and read", "markers", "write", "read")
}

const header = "requeue-claim"
const version = "1"

const defaultFormat: Format = {
  markers: [header],
  write: (key, size, { headers, native }) => ({
    body: Codec.json.encode({ key, size }),
    headers: { ...headers, [header]: version },
    native
  }),
  read: (bytes, headers) => {
    if (headers[header] !== version) throw new InvalidPointerError({ detail: `${header} must be ${version}` })
    return keyOf(bytes)
  }
}

/** Returns the key that `put` returned. It throws if there is none, because the message could never be read. */
const keyIn = (answer: unknown): string => {
  if (typeof answer === "string") return answer
  throw new TypeError(`put must return a key, got ${OptionKind.show(answer)}`)
}

const keyOf = (bytes: Uint8Array): string => {
  let pointer: unknown
  try {
    pointer = Codec.json.decode(bytes, {})
  } catch {
    throw new InvalidPointerError({ detail: "the pointer is not JSON" })
  }
  const key = OptionKind.isObject(pointer) && Object.hasOwn(pointer, "key") ? Reflect.get(pointer, "key") : undefined
  if (typeof key === "string") return key
  throw new InvalidPointerError({ detail: "the pointer has no key" })
}

/**
 * Makes a codec that stores bodies larger than `threshold`. It reads pointers and whole bodies, so deploy consumers first and
 * producers later. To compress, put the compression inside: `ClaimCheck.make(CompressedCodec.gzip(codec), options)`.
 *
 * A missing body is a {@link LostBodyError}. A store that fails is a {@link StoreError}, which counts as a failed attempt; for
 * a send it is the cause of an `EncodeError`. Messages are sent in the order in which their bodies were stored.
 *
 * https://www.enterpriseintegrationpatterns.com/patterns/messaging/StoreInLibrary.html
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { ClaimCheck } from "@requeue/codecs"
 *
 * const bodies = new Map<string, Uint8Array>()
 * const store: ClaimCheck.Store = {
 *   name: "this process",
 *   put: async (bytes) => {
 *     const key = crypto.randomUUID()
 *     bodies.set(key, bytes)
 *     return key
 *   },
 *   get: async (key) => bodies.get(key)
 * }
 * const pages = QueueDefinition.make("pages", { codec: ClaimCheck.make(Codec.text, { store, threshold: 1000 }) })
 * ```
 */
export const make = <A, I>(codec: Codec.Codec<A, I>, options: Options): Codec.Codec<A, I> => {
  OptionNames.check("ClaimCheck.make", options, kinds)
  const { format = defaultFormat, lost = "dead-letter", store, threshold = 262_144 } = options
  if (store === undefined) throw new RangeError("ClaimCheck.make: store must be given")
  const inner = OwnBytes.guard(codec)

  const call = async <R>(operation: "put" | "get", key: string | undefined, run: () => Promise<R>): Promise<R> => {
    try {
      return await run()
    } catch (cause) {
      throw new StoreError({ operation, store: store.name, key, cause })
    }
  }

  const put = async (sealed: Codec.EncodedMessage): Promise<Codec.EncodedMessage> => {
    const key = await call("put", undefined, async () => keyIn(await store.put(sealed.body)))
    return format.write(key, sealed.body.length, sealed)
  }

  const get = async (key: string): Promise<Uint8Array> => {
    const bytes = await call("get", key, () => store.get(key))
    if (bytes === undefined) throw new LostBodyError({ store: store.name, key, permanent: lost === "dead-letter" })
    return bytes
  }

  const isSmall = (bytes: Uint8Array) => bytes.length <= threshold
  const isMarker = ([name]: readonly [string, string]) => format.markers.includes(name)
  const unmarked = (headers: Message.Headers): Message.Headers =>
    Object.fromEntries(Object.entries(headers).filter((entry) => !isMarker(entry)))
  /** Removes marking headers from the sender's headers, because they would make the message a pointer. */
  const plain = (sealed: Codec.EncodedMessage) => ({ ...sealed, headers: unmarked(sealed.headers) })
  const settle = (sealed: Codec.EncodedMessage) => (isSmall(sealed.body) ? plain(sealed) : put(sealed))

  /** Returns a function that reads the body from the message or the store. */
  const reading =
    <R>(read: (bytes: Uint8Array, headers: Message.Headers) => R | Promise<R>) =>
    (bytes: Uint8Array, headers: Message.Headers): R | Promise<R> => {
      if (!Object.entries(headers).some(isMarker)) return read(bytes, headers)
      return get(format.read(bytes, headers)).then((stored) => read(stored, unmarked(headers)))
    }

  return OwnBytes.isSeparate({
    contentType: codec.contentType,
    contentEncoding: codec.contentEncoding,
    encode: (body) => {
      const bytes = inner.encode(body)
      if (isSmall(bytes)) return bytes
      throw new TypeError("ClaimCheck: storing a large body is asynchronous. Call encodeMessage instead of encode")
    },
    encodeMessage: (body, given) => Thenable.map(Codec.encodeMessage(inner, body, given), settle),
    decode: reading(inner.decode),
    decodeMessage: reading((bytes, headers) => Codec.decodeMessage(inner, bytes, headers))
  })
}
