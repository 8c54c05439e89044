/** The codec of Cloudflare Queues: four forms of bodies, identified by the `content-type` header. */
import { Codec, type Message, type QueueDefinition } from "@requeue/core"
import { OwnBytes } from "@requeue/core/port"
import { deserialize, serialize } from "node:v8"
import type { QueueContentType } from "./options.ts"
import { verify } from "./v8Arrays.ts"

export const mediaTypes: { readonly [K in QueueContentType]: string } = {
  text: "text/plain; charset=utf-8",
  bytes: "application/octet-stream",
  json: "application/json",
  v8: "application/x-v8-structured-clone"
}

const contentTypes: ReadonlyArray<QueueContentType> = ["text", "bytes", "json", "v8"]

const wrongBody = (type: QueueContentType, wanted: string, body: unknown): TypeError =>
  new TypeError(`a body of contentType "${type}" must be ${wanted}, got ${body === null ? "null" : typeof body}`)

const encoders: { readonly [K in QueueContentType]: (body: unknown) => Uint8Array } = {
  text: (body) => {
    if (typeof body !== "string") throw wrongBody("text", "a string", body)
    return Codec.text.encode(body)
  },
  bytes: (body) => {
    if (ArrayBuffer.isView(body)) return OwnBytes.copy(new Uint8Array(body.buffer, body.byteOffset, body.byteLength))
    if (!(body instanceof ArrayBuffer)) throw wrongBody("bytes", "an ArrayBuffer or a view of one", body)
    return OwnBytes.copy(new Uint8Array(body))
  },
  json: Codec.json.encode,
  v8: (body) => new Uint8Array(serialize(body))
}

const typeOf = (headers: Message.Headers): QueueContentType | undefined => {
  const media = headers["content-type"]
  if (media === undefined) return "json"
  return contentTypes.find((type) => media.startsWith(mediaTypes[type].split(";")[0]!))
}

interface TypedBody {
  readonly type: QueueContentType
  readonly body: unknown
}

/**
 * The codec of Cloudflare's bodies. The header `content-type` names the form of the body. Without the header, a body is
 * JSON; if the form is unknown, the body is bytes.
 */
export const codec: Codec.Codec<QueueDefinition.AnyBody> = OwnBytes.isSeparate({
  contentType: undefined,
  encode: ({ body, type }: TypedBody) => {
    if (!Object.hasOwn(encoders, type)) {
      throw new TypeError(`contentType must be one of ${Object.keys(encoders).join(", ")}, got ${JSON.stringify(type)}`)
    }
    return encoders[type](body)
  },
  decode: (bytes, headers) => {
    switch (typeOf(headers)) {
      case "text":
        return Codec.text.decode(bytes, headers)
      case "json":
        return Codec.json.decode(bytes, headers)
      case "v8":
        verify(bytes)
        // A copy, because typed arrays in the body are views of the input.
        return deserialize(new Uint8Array(bytes))
      default:
        return new Uint8Array(bytes).buffer
    }
  }
})
