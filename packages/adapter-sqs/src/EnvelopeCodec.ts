/**
 * Wraps a codec to read messages in the envelope of Amazon SNS or EventBridge. The envelope's attributes and facts become
 * headers that the handler sees.
 *
 * When to use: for a queue that is subscribed to a topic without raw message delivery, or that is the target of a rule. The
 * codecs can be nested like the services: `sns(eventBridge(codec))` reads events that a rule has sent to a topic.
 *
 * A body without an envelope is called bare, for example after raw message delivery, or if it was sent directly to the
 * queue. The inner codec reads a bare body with the message's own headers, unless the option `bare` is `refuse`. Sends are
 * bare. Retries, dead letters and redrives keep the envelope byte for byte.
 *
 * Signatures are not checked: the queue's policy controls which services may send to it.
 */
import { Codec, type Message } from "@requeue/core"
import { Metadata, OptionKind, OptionNames, OwnBytes, Thenable } from "@requeue/core/port"
import * as Data from "effect/Data"

/** An envelope that cannot be read, or whose content the inner codec cannot read: that codec's error is the `cause`. */
export class EnvelopeError extends Data.TaggedError("EnvelopeError")<{
  /** The call that made the codec. */
  readonly call: string
  readonly detail: string
  readonly cause?: unknown
}> {
  override get message() {
    return `${this.call}: ${this.detail}${this.cause === undefined ? "" : `: ${String(this.cause)}`}`
  }
}

/** Options of {@link sns} and {@link eventBridge}. */
export interface Options {
  /**
   * How to treat a bare body: `read` passes it to the inner codec; `refuse` makes it undecodable, and every send an
   * error. Default: `read`.
   */
  readonly bare?: "read" | "refuse" | undefined
}

const kinds: OptionNames.Of<Options> = { bare: OptionKind.oneOf(["read", "refuse"]) }

type Json = Readonly<Record<string, unknown>>

/** The content of an envelope, with the headers that it gives to the message. */
interface Content {
  readonly text: string
  /** Headers that the sender chose; the message's own headers take precedence over them. */
  readonly attributes: Message.Headers
  /** Facts of the envelope, which take precedence over all other headers. */
  readonly facts: Message.Headers
}

/** Returns the content of a JSON object; `undefined` if it is not an envelope. */
type Take = (json: Json) => Content | undefined

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true })

/** Parses a body as a JSON object; `undefined` if it is not one. */
const objectOf = (bytes: Uint8Array): Json | undefined => {
  try {
    const json: unknown = JSON.parse(decoder.decode(bytes))
    return OptionKind.isObject(json) ? (json as Json) : undefined // Each value is checked before use.
  } catch {
    return undefined
  }
}

const member = (json: Json, name: string): unknown => (Object.hasOwn(json, name) ? json[name] : undefined)

const textOf = (json: Json, name: string): string | undefined => {
  const value = member(json, name)
  return typeof value === "string" ? value : undefined
}

/** Returns the text members under their header names. */
const factsOf = (json: Json, names: Message.Headers): Message.Headers =>
  Object.fromEntries(
    Object.entries(names).flatMap(([header, name]) => {
      const value = textOf(json, name)
      return value === undefined ? [] : [[header, value]]
    })
  )

const codecOf =
  (name: "sns" | "eventBridge", take: Take) =>
  <A, I>(codec: Codec.Codec<A, I>, options: Options = {}): Codec.Codec<A, I> => {
    const call = `EnvelopeCodec.${name}`
    OptionNames.check(call, options, kinds)
    const inner = OwnBytes.guard(codec)
    const { bare = "read" } = options
    const refuse = (): never => {
      throw new EnvelopeError({ call, detail: `the body is not an envelope, and bare bodies are refused` })
    }
    const unread = (cause: unknown): never => {
      throw new EnvelopeError({ call, detail: "the content of the envelope cannot be read", cause })
    }
    /** Reads the content of the envelope with the inner codec. */
    const reading =
      <R>(read: (bytes: Uint8Array, headers: Message.Headers) => R | Promise<R>) =>
      (bytes: Uint8Array, headers: Message.Headers): R | Promise<R> => {
        const json = objectOf(bytes)
        const content = json === undefined ? undefined : take(json)
        if (content === undefined) return bare === "refuse" ? refuse() : read(bytes, headers)
        try {
          const made = read(encoder.encode(content.text), { ...content.attributes, ...headers, ...content.facts })
          return Thenable.is(made) ? Promise.resolve(made).catch(unread) : made
        } catch (cause) {
          return unread(cause)
        }
      }

    return OwnBytes.isSeparate({
      contentType: codec.contentType,
      contentEncoding: codec.contentEncoding,
      encode: (body) => (bare === "refuse" ? refuse() : inner.encode(body)),
      decode: reading(inner.decode),
      decodeMessage: reading((bytes, headers) => Codec.decodeMessage(inner, bytes, headers)),
      encodeMessage:
        inner.encodeMessage && ((body, given) => (bare === "refuse" ? refuse() : inner.encodeMessage!(body, given)))
    })
  }

const notification: Message.Headers = {
  "x-amz-sns-message-id": "MessageId",
  "x-amz-sns-topic-arn": "TopicArn",
  "x-amz-sns-timestamp": "Timestamp",
  "x-amz-sns-subject": "Subject",
  "x-amz-sns-sequence-number": "SequenceNumber"
}

/** Returns the attributes as headers, with values as text whatever their type; bytes in base64. */
const attributesOf = (json: Json): Message.Headers => {
  const attributes = member(json, "MessageAttributes")
  if (!OptionKind.isObject(attributes)) return {}
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, attribute]: [string, unknown]) => {
      const value = OptionKind.isObject(attribute) ? textOf(attribute as Json, "Value") : undefined // One of its members.
      return value === undefined || name === Metadata.header ? [] : [[name, value]]
    })
  )
}

const takeNotification: Take = (json) => {
  const [type, topic, text] = [textOf(json, "Type"), textOf(json, "TopicArn"), textOf(json, "Message")]
  if (topic === undefined || text === undefined || textOf(json, "MessageId") === undefined) return undefined
  if (type === "SubscriptionConfirmation" || type === "UnsubscribeConfirmation") {
    const detail = `the body is a ${type} of ${topic}, not a message. Confirm the subscription with its SubscribeURL`
    throw new EnvelopeError({ call: "EnvelopeCodec.sns", detail })
  }
  if (type !== "Notification") return undefined
  return { text, attributes: attributesOf(json), facts: factsOf(json, notification) }
}

/**
 * Makes a codec that reads notifications of Amazon SNS, and bodies without an envelope. A body is a notification if it is a
 * JSON object whose `Type` is `Notification`, and whose `MessageId`, `TopicArn` and `Message` are text. The inner codec
 * reads `Message`. A request to confirm a subscription is undecodable.
 *
 * | header | of the notification |
 * | --- | --- |
 * | `x-amz-sns-message-id`, `x-amz-sns-topic-arn` | `MessageId`, `TopicArn` |
 * | `x-amz-sns-timestamp` | `Timestamp`, when it was published |
 * | `x-amz-sns-subject`, `x-amz-sns-sequence-number` | `Subject`, and `SequenceNumber` of a FIFO topic, if present |
 * | every other | the message attribute of that name, as text; bytes in base64 |
 *
 * For equal names, the first three rows take precedence over the message's own headers, and these over attributes. An
 * attribute named `requeue` is ignored.
 *
 * https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html
 * https://docs.aws.amazon.com/sns/latest/dg/sns-large-payload-raw-message-delivery.html
 *
 * @throws RangeError when an option is unknown or of another kind
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { EnvelopeCodec } from "@requeue/adapter-sqs"
 *
 * const orders = QueueDefinition.make("orders", { codec: EnvelopeCodec.sns(Codec.json) })
 * ```
 */
export const sns: <A, I>(codec: Codec.Codec<A, I>, options?: Options) => Codec.Codec<A, I> = codecOf(
  "sns",
  takeNotification
)

const event: Message.Headers = {
  "x-amz-event-id": "id",
  "x-amz-event-source": "source",
  "x-amz-event-detail-type": "detail-type",
  "x-amz-event-time": "time",
  "x-amz-event-account": "account",
  "x-amz-event-region": "region"
}

const takeEvent: Take = (json) => {
  const detail = member(json, "detail")
  const isEvent = ["id", "source", "detail-type"].every((name) => textOf(json, name) !== undefined)
  if (!isEvent || !OptionKind.isObject(detail)) return undefined
  const resources = member(json, "resources")
  try {
    const facts = factsOf(json, event)
    return {
      text: JSON.stringify(detail),
      attributes: {},
      facts: Array.isArray(resources) ? { ...facts, "x-amz-event-resources": JSON.stringify(resources) } : facts
    }
  } catch (cause) {
    throw new EnvelopeError({ call: "EnvelopeCodec.eventBridge", detail: "the event cannot be read", cause })
  }
}

/**
 * Makes a codec that reads events of Amazon EventBridge, and bodies without an envelope. A body is an event if it is a JSON
 * object whose `id`, `source` and `detail-type` are text, and whose `detail` is an object. The inner codec reads `detail`,
 * serialized again: numbers have JavaScript's precision.
 *
 * | header | of the event |
 * | --- | --- |
 * | `x-amz-event-id`, `x-amz-event-source`, `x-amz-event-detail-type` | `id`, `source`, `detail-type` |
 * | `x-amz-event-time`, `x-amz-event-account`, `x-amz-event-region` | `time`, `account`, `region` |
 * | `x-amz-event-resources` | `resources`, as JSON |
 *
 * These headers take precedence over the message's own headers of the same names.
 *
 * https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
 *
 * @throws RangeError when an option is unknown or of another kind
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { EnvelopeCodec } from "@requeue/adapter-sqs"
 *
 * const uploads = QueueDefinition.make("uploads", { codec: EnvelopeCodec.eventBridge(Codec.json, { bare: "refuse" }) })
 * ```
 */
export const eventBridge: <A, I>(codec: Codec.Codec<A, I>, options?: Options) => Codec.Codec<A, I> = codecOf(
  "eventBridge",
  takeEvent
)
