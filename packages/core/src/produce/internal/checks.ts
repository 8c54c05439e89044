/** Checks of a message before a send: `send` and `sendBatch` return a RangeError; the others throw the send's error. */
import type { Capabilities } from "../../port/Capabilities.ts"
import * as Delay from "../../message/Delay.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import type { Codec } from "../../message/Codec.ts"
import { EncodeError } from "../../message/EncodeError.ts"
import type { Headers, Native } from "../../message/Message.ts"
import * as Metadata from "../../message/Metadata.ts"
import * as Failure from "../../policy/Failure.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"

/** The options of one message. */
export interface SendOptions {
  /**
   * Time until the first delivery. Range: 0 to 24 hours; a number means milliseconds. Default: the delay of the
   * batch, else of the queue, else 0.
   */
  readonly delay?: Delay.DurationInput | undefined
  /**
   * Headers of the message. `requeue` and the names under "Wire format" on the broker's page are reserved. Default: the
   * codec's `content-type`.
   */
  readonly headers?: Headers | undefined
  /** The message id. Range: 1 to 200 characters, no control characters. Default: a random UUID. */
  readonly id?: string | undefined
  /**
   * Messages of the queue with the same key are handled one at a time, in the order of their sends. A broker that does not keep this
   * order refuses the message. Range: 1 to 200 characters, no control characters. Default: no order.
   */
  readonly key?: string | undefined
  /**
   * Whose message it is, such as the id of a tenant. Consumers take the messages of each value in turn, so one with many waiting messages
   * does not delay the others. A broker that cannot do this refuses the message. Range: 1 to 200 characters, no control characters.
   * Default: none.
   */
  readonly fairBy?: string | undefined
  /**
   * Options for one broker, such as `RabbitMqNative.make(...)` or `SqsNative.make(...)`. Other brokers ignore them.
   * Default: none.
   */
  readonly native?: Native | undefined
}

/** One message of a batch. */
export interface BatchEntry<A> extends SendOptions {
  /** The body, as the queue's codec or schema takes it; by default any JSON. */
  readonly body: A
}

/** The options of `sendBatch`. */
export interface BatchOptions {
  /** Delay of the messages for which no `delay` is given, as in {@link SendOptions}. Default: the queue's delay, else 0. */
  readonly delay?: Delay.DurationInput | undefined
}

const batchKinds: OptionNames.Of<BatchOptions> = { delay: Delay.parsed }
const header =
  (name: string) =>
  (value: string): string =>
    `{ "${name}": ${value} }`
const groupHeader = header("message-group-id")
const deduplicationHeader = header("message-deduplication-id")
/** Options of SQS's own API, which are headers here. */
const asHeaders: Readonly<Record<string, (value: string) => string>> = {
  messageGroupId: groupHeader,
  MessageGroupId: groupHeader,
  messageDeduplicationId: deduplicationHeader,
  MessageDeduplicationId: deduplicationHeader
}
const headersKind: OptionKind.OptionKind = {
  ...OptionKind.plain("a plain object with text values"),
  inside: asHeaders
}
const isByBroker = (value: unknown): value is object =>
  OptionKind.isObject(value) && Object.values(value).every((each) => each === undefined || OptionKind.isObject(each))
const nativeKind: OptionKind.OptionKind = {
  expected: "an object with options of a broker, such as RabbitMqNative.make(...)",
  holds: isByBroker,
  remedy: (value) => {
    const [name] = OptionKind.isObject(value) ? Object.keys(value).filter((each) => Object.hasOwn(asHeaders, each)) : []
    return name === undefined ? undefined : `${name} belongs in headers. Write headers: ${asHeaders[name]!("…")}`
  }
}
/** {@link id} checks it, with the message's other errors. */
const idKind: OptionKind.OptionKind = {
  ...OptionKind.text,
  holds: () => true,
  fits: (value) => typeof value === "string" && Delay.parsed.fits?.(value) === false
}
/** {@link shortText} checks it, with the message's other errors. */
const laterKind: OptionKind.OptionKind = { ...OptionKind.text, holds: () => true, fits: () => false }
const sendKinds: OptionNames.Of<SendOptions> = {
  ...batchKinds,
  headers: headersKind,
  id: idKind,
  key: laterKind,
  fairBy: laterKind,
  native: nativeKind
}
const entryKinds: OptionNames.Of<BatchEntry<never>> = { body: true, ...sendKinds }

export const send = (call: string, queue: OptionNames.Queue, options: unknown): RangeError | undefined =>
  options === undefined ? undefined : OptionNames.refusal(call, options, sendKinds, queue)

const inEntry: OptionNames.Elsewhere = (name) =>
  Object.hasOwn(sendKinds, name) ? `It belongs in each entry. Write { body, ${name} }` : undefined

export const sendBatch = (
  call: string,
  queue: OptionNames.Queue,
  entries: unknown,
  options: unknown
): RangeError | undefined =>
  (options === undefined ? undefined : OptionNames.refusal(call, options, batchKinds, queue, inEntry)) ??
  OptionNames.entries(call, "entries", entries, entryKinds, queue)

/**
 * The errors of `send`: an error of the broker, a delay that the broker does not support, or a message that cannot be
 * sent.
 */
export type SendError = BrokerError | Delay.InvalidDelay | EncodeError

/** Returns a delay in milliseconds, at most `limit`; `undefined` if none is given. */
export const delay = (
  field: string,
  input: Delay.DurationInput | undefined,
  limit: Delay.Delay
): Delay.Delay | undefined => {
  const millis = input === undefined ? undefined : Delay.parse(field, input)
  if (millis !== undefined && millis > limit) throw new Delay.InvalidDelay({ field, got: input, limit })
  return millis
}

export const encode = <A>(codec: Codec<unknown, A>, queue: string, body: A): Uint8Array => {
  try {
    return codec.encode(body)
  } catch (cause) {
    throw unencodable(queue, cause)
  }
}

/** Makes the error of a failed encoding. The codec's own error may have a remedy. */
export const unencodable = (queue: string, cause: unknown): EncodeError => {
  const { message, name } = Failure.summarize(cause)
  const own = cause instanceof Error && "remedy" in cause ? cause.remedy : undefined
  const remedy = typeof own === "string" ? own : "Send a body that the queue's codec can encode"
  return new EncodeError({ queue, field: "body", detail: `${name}: ${message}`, remedy, cause })
}

export const size = (
  queue: string,
  body: Uint8Array,
  { broker, maxBodySize, maxTextSize }: Capabilities
): Uint8Array => {
  if (body.length <= (maxTextSize ?? maxBodySize)) return body
  throw new BrokerError({
    broker,
    operation: "publish",
    reason: "BodyTooLarge",
    queue,
    detail: `the body has ${body.length} bytes, the limit is ${maxTextSize ?? maxBodySize}`,
    remedy: "Store the content elsewhere and send a reference to it, as the codec ClaimCheck does"
  })
}

/** Adds to an error the entry's place in the batch and the id that its sender gave. */
export const ofEntry = <E>(entries: ReadonlyArray<Pick<SendOptions, "id">>, index: number, error: E): E | SendError => {
  if (entries.length === 1) return error
  const [place, given] = [`entries[${index}]`, entries[index]?.id]
  const id = Metadata.problemOfId(given) === undefined ? given : undefined
  if (error instanceof EncodeError) {
    const { cause, detail, field, queue, remedy } = error
    return new EncodeError({ queue, field: `${place}.${field}`, id, detail, remedy, cause })
  }
  if (error instanceof BrokerError) {
    const { broker, operation, queue, reason, remedy } = error
    const part = reason === "BodyTooLarge" ? `${place}.body` : place
    const detail = `${part}${id === undefined ? "" : ` (id ${id})`}: ${error.detail}`
    return new BrokerError({ broker, operation, queue, reason, detail, remedy })
  }
  if (error instanceof Delay.InvalidDelay) {
    const { got, limit = Delay.max } = error
    return new Delay.InvalidDelay({ field: `${place}.delay`, got, limit })
  }
  return error
}

export const id = (queue: string, id: string): string => {
  const problem = Metadata.problemOfId(id)
  if (problem === undefined) return id
  throw new EncodeError({ queue, field: "id", detail: problem, remedy: "Leave id out for a random UUID" })
}

/** Returns a key or a `fairBy`. */
export const shortText = (queue: string, field: "key" | "fairBy", value: string): string => {
  const problem = Metadata.problemOfId(value)
  if (problem === undefined) return value
  throw new EncodeError({ queue, field, detail: problem, remedy: "Use a short text, such as an id" })
}

export const headers = (queue: string, headers: Headers): Headers => {
  if (!headersKind.holds(headers)) {
    const detail = `must be ${headersKind.expected}, got ${OptionKind.show(headers)}`
    throw new EncodeError({
      queue,
      field: "headers",
      detail,
      remedy: "Make the queue's codec return headers as a plain object with text values"
    })
  }
  for (const [key, value] of Object.entries<unknown>(headers)) {
    const problem =
      key === Metadata.header
        ? { detail: `"${key}" is reserved for Requeue's own metadata`, remedy: "Use another header name" }
        : typeof value === "string"
          ? undefined
          : { detail: `${JSON.stringify(key)} must be text, got ${typeof value}`, remedy: "Convert the value to text" }
    if (problem !== undefined) throw new EncodeError({ queue, field: "headers", ...problem })
  }
  return headers
}
