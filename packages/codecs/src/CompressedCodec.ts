/**
 * Compressed codecs: they compress the bytes of another codec by gzip or deflate, and set the header `content-encoding`.
 *
 * When to use: for bodies of several kilobytes, such as JSON, if the broker limits or bills bytes. Bodies without that header
 * are read uncompressed, so deploy consumers first and producers later. A body is undecodable if it is truncated, has an
 * unknown encoding, or is larger than `maxSize`.
 */
import type { Codec, Message } from "@requeue/core"
import { OptionKind, OptionNames, OwnBytes, Thenable } from "@requeue/core/port"
import { promisify } from "node:util"
import * as zlib from "node:zlib"

/** Options of {@link gzip} and {@link deflate}. */
export interface Options {
  /**
   * The largest uncompressed body, in bytes, 1 to 512 MiB. Without a limit, a few kilobytes could decompress to gigabytes.
   * Default: 16 MiB.
   */
  readonly maxSize?: number | undefined
}

const mebibyte = 1024 * 1024

const kinds: OptionNames.Of<Options> = { maxSize: OptionKind.whole(1, 512 * mebibyte) }

type Inflate = (bytes: Uint8Array, options: zlib.ZlibOptions) => Promise<Uint8Array>

const inflates: ReadonlyMap<string, Inflate> = new Map<string, Inflate>([
  ["gzip", promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.gunzip)],
  // The older name of gzip. https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.3
  ["x-gzip", promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.gunzip)],
  ["deflate", promisify<Uint8Array, zlib.ZlibOptions, Uint8Array>(zlib.inflate)]
])

const codecOf =
  (contentEncoding: "gzip" | "deflate", compress: (bytes: Uint8Array) => Uint8Array) =>
  <A, I>(codec: Codec.Codec<A, I>, options: Options = {}): Codec.Codec<A, I> => {
    const call = `CompressedCodec.${contentEncoding}`
    OptionNames.check(call, options, kinds)
    if (codec.contentEncoding !== undefined)
      throw new RangeError(`${call}: codec must not be compressed, got one with ${codec.contentEncoding}`)
    const { maxSize = 16 * mebibyte } = options
    const inner = OwnBytes.guard(codec)
    const tooLarge = () => new RangeError(`${call}: body must have at most ${maxSize} bytes. Raise maxSize`)

    const compressed = (bytes: Uint8Array): Uint8Array => {
      if (bytes.length > maxSize) throw tooLarge()
      return compress(bytes)
    }

    const smaller = (sealed: Codec.EncodedMessage): Codec.EncodedMessage => ({
      ...sealed,
      body: compressed(sealed.body)
    })

    const inflate = async (encoding: string, bytes: Uint8Array): Promise<Uint8Array> => {
      const read = inflates.get(encoding)
      if (read === undefined) throw new TypeError(`${call}: content-encoding must be gzip or deflate, got ${encoding}`)
      try {
        return await read(bytes, { maxOutputLength: maxSize })
      } catch (error) {
        throw Object(error).code === "ERR_BUFFER_TOO_LARGE" ? tooLarge() : error
      }
    }

    /** Returns a function that decompresses the bytes as the headers require, and reads them. */
    const reading =
      <R>(read: (bytes: Uint8Array, headers: Message.Headers) => R | Promise<R>) =>
      (bytes: Uint8Array, headers: Message.Headers): R | Promise<R> => {
        const encoding = headers["content-encoding"]?.toLowerCase() ?? ""
        return encoding === "" || encoding === "identity"
          ? read(bytes, headers)
          : inflate(encoding, bytes).then((inflated) => read(inflated, headers))
      }

    return OwnBytes.isSeparate({
      contentType: codec.contentType,
      contentEncoding,
      encode: (body) => compressed(inner.encode(body)),
      decode: reading(inner.decode),
      decodeMessage: inner.decodeMessage && reading(inner.decodeMessage),
      encodeMessage: inner.encodeMessage && ((body, given) => Thenable.map(inner.encodeMessage!(body, given), smaller))
    })
  }

/**
 * Makes a codec that compresses by gzip. It reads gzip, deflate and uncompressed bodies.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range, or the codec is already compressed
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { CompressedCodec } from "@requeue/codecs"
 *
 * const orders = QueueDefinition.make("orders", { codec: CompressedCodec.gzip(Codec.json) })
 * ```
 */
export const gzip: <A, I>(codec: Codec.Codec<A, I>, options?: Options) => Codec.Codec<A, I> = codecOf("gzip", (bytes) =>
  zlib.gzipSync(bytes)
)

/**
 * Makes a codec that compresses by deflate, in HTTP's zlib format. It reads gzip, deflate and uncompressed bodies.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range, or the codec is already compressed
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { CompressedCodec } from "@requeue/codecs"
 *
 * const codec = CompressedCodec.deflate(Codec.text, { maxSize: 1024 * 1024 })
 * const pages = QueueDefinition.make("pages", { codec })
 * ```
 */
export const deflate: <A, I>(codec: Codec.Codec<A, I>, options?: Options) => Codec.Codec<A, I> = codecOf(
  "deflate",
  (bytes) => zlib.deflateSync(bytes)
)
