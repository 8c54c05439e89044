/**
 * Claim checks: a codec around a codec that puts large bodies into a store, and sends a pointer to each in its place.
 *
 * When to use: for bodies that are larger than the broker takes, or that should not go through it. Everybody who reads the
 * queue needs the codec and the store.
 *
 * A body is stored before its message is published, and nothing here removes it: its message may come again after the ack
 * was lost, a retry, a dead letter and a redrive are copies with the same pointer, and a topic may have given the pointer to
 * several queues. Let the store itself remove what is older than messages and dead letters ever get, as by a lifecycle rule.
 */
import { Codec, type Message } from "@requeue/core"
import { OptionKind, OptionNames, OwnBytes, Thenable } from "@requeue/core/port"
import * as Data from "effect/Data"

/** A place for large bodies. Its errors are written down with messages that are given up: let them have no secrets. */
export interface Store {
  /** Its name in errors, such as `s3://bucket`. */
  readonly name: string
  /** Stores bytes for good, and answers their key, by which everybody can get them. */
  readonly put: (bytes: Uint8Array) => Promise<string>
  /** The bytes under a key; `undefined` when it is certain that there are none. It rejects when it cannot tell. */
  readonly get: (key: string) => Promise<Uint8Array | undefined>
}

/** A way to write a pointer as a message. */
export interface Format {
  /** Names of the headers by one of which a message is a pointer. No handler sees them. */
  readonly markers: ReadonlyArray<string>
  /** Writes the pointer to a body of so many bytes, with a marker. */
  readonly write: (key: string, size: number, given: Codec.MessageParts) => Codec.EncodedMessage
  /** The key in a message that has a marker. It throws when there is none. */
  readonly read: (bytes: Uint8Array, headers: Message.Headers) => string
}

/** The store did not do what it was asked for. A send has published nothing; a message is retried. */
export class StoreError extends Data.TaggedError("StoreError")<{
  /** The call of the store. */
  readonly operation: "put" | "get"
  /** The store's name. */
  readonly store: string
  /** The key; `undefined` for `put`. */
  readonly key: string | undefined
  readonly cause: unknown
}> {
  readonly remedy = "Try again when the store answers, or let it take what this program asks"
  /** Whether no retry can help: only where the store's error says so by `permanent: true`. */
  get permanent() {
    return Object(this.cause).permanent === true
  }
  override get message() {
    const { cause, key, operation, store } = this
    return `ClaimCheck: ${operation}${key === undefined ? "" : ` ${key}`} in ${store}: ${String(cause)}`
  }
}

/** The store has nothing under a key. */
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
      "Let the store keep bodies for longer than messages and dead letters live"
    )
  }
}

/** A message that says that it is a pointer, and is none. */
export class InvalidPointerError extends Data.TaggedError("InvalidPointerError")<{ readonly detail: string }> {
  override get message() {
    return `ClaimCheck: the message is no pointer to a body: ${this.detail}`
  }
}

/** Options of {@link make}. */
export interface Options {
  /** The place for large bodies. */
  readonly store: Store
  /** Bytes that a body may have without being stored, 0 or more; as the inner codec encodes it. Default: 262,144. */
  readonly threshold?: number | undefined
  /**
   * The treatment of a message whose body is not in the store: `dead-letter` gives it up at once as undecodable, `retry`
   * does as the policy says, for a store that shows late what it has. Default: `dead-letter`.
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

const own: Format = {
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

/** A message that led nowhere could never be read. */
const keyIn = (answer: unknown): string => {
  if (typeof answer === "string") return answer
  throw new TypeError(`put must answer a key, got ${OptionKind.show(answer)}`)
}

const keyOf = (bytes: Uint8Array): string => {
  let pointer: unknown
  try {
    pointer = Codec.json.decode(bytes, {})
  } catch {
    throw new InvalidPointerError({ detail: "it is not JSON" })
  }
  const key = OptionKind.isObject(pointer) && Object.hasOwn(pointer, "key") ? Reflect.get(pointer, "key") : undefined
  if (typeof key === "string") return key
  throw new InvalidPointerError({ detail: "it has no key" })
}

/**
 * A codec that stores bodies larger than `threshold`, and reads both pointers and bodies that were sent as they are, so that
 * consumers can be changed first and producers later. Compress inside of it: `ClaimCheck.make(CompressedCodec.gzip(codec))`.
 *
 * A body that was lost is a {@link LostBodyError}; a store that cannot be reached, or refuses, is a {@link StoreError}, which
 * counts as a failed attempt, as when the handler's own dependency is down. On a send it is the cause of an `EncodeError`.
 * The order of sends is that in which their bodies have been stored.
 *
 * https://www.enterpriseintegrationpatterns.com/patterns/messaging/StoreInLibrary.html
 *
 * @throws RangeError when an option is unknown, of another kind or out of its range
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
  const { format = own, lost = "dead-letter", store, threshold = 262_144 } = options
  if (store === undefined) throw new RangeError("ClaimCheck.make: store must be given")
  const inner = OwnBytes.guard(codec)

  const ask = async <R>(operation: "put" | "get", key: string | undefined, call: () => Promise<R>): Promise<R> => {
    try {
      return await call()
    } catch (cause) {
      throw new StoreError({ operation, store: store.name, key, cause })
    }
  }

  const put = async (sealed: Codec.EncodedMessage): Promise<Codec.EncodedMessage> => {
    const key = await ask("put", undefined, async () => keyIn(await store.put(sealed.body)))
    return format.write(key, sealed.body.length, sealed)
  }

  const get = async (key: string): Promise<Uint8Array> => {
    const bytes = await ask("get", key, () => store.get(key))
    if (bytes === undefined) throw new LostBodyError({ store: store.name, key, permanent: lost === "dead-letter" })
    return bytes
  }

  const isSmall = (bytes: Uint8Array) => bytes.length <= threshold
  const isMarker = ([name]: readonly [string, string]) => format.markers.includes(name)
  const unmarked = (headers: Message.Headers): Message.Headers =>
    Object.fromEntries(Object.entries(headers).filter((entry) => !isMarker(entry)))
  /** A marker among the sender's headers would make it a pointer. */
  const plain = (sealed: Codec.EncodedMessage) => ({ ...sealed, headers: unmarked(sealed.headers) })
  const settle = (sealed: Codec.EncodedMessage) => (isSmall(sealed.body) ? plain(sealed) : put(sealed))

  /** Gives the body, wherever it is, to whoever asked for it. */
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
      throw new TypeError("ClaimCheck: a large body takes time to store. Call encodeMessage in place of encode")
    },
    encodeMessage: (body, given) => Thenable.map(Codec.encodeMessage(inner, body, given), settle),
    decode: reading(inner.decode),
    decodeMessage: reading((bytes, headers) => Codec.decodeMessage(inner, bytes, headers))
  })
}
