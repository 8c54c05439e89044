/** Options and their kinds, with the names and units of wrangler and of Cloudflare's runtime. */
import { Delay, type Handler, QueueDefinition } from "@requeue/core"
import { OptionKind, type OptionNames } from "@requeue/core/port"

/** The form of a body: see `contentType` of {@link QueueSendOptions}. */
export type QueueContentType = "text" | "bytes" | "json" | "v8"

/** Options of `retry` and `retryAll`. */
export interface QueueRetryOptions {
  /**
   * The delay in seconds, 0 to 86,400. A number out of range becomes the nearest delay that the broker can keep; any other
   * value is ignored. Default: the consumer's `retry_delay`.
   */
  delaySeconds?: number
}

/** Options of `send`. */
export interface QueueSendOptions {
  /** The form of the body. Default `"json"`. */
  contentType?: QueueContentType
  /** The delay in seconds, 0 to 86,400. Default: the producer's `delivery_delay`. */
  delaySeconds?: number
}

/** Options of `sendBatch`. */
export interface QueueSendBatchOptions {
  /** The delay of messages without `delaySeconds`, in seconds, 0 to 86,400. Default: the producer's `delivery_delay`. */
  delaySeconds?: number
}

/** One message of `sendBatch`. */
export interface MessageSendRequest<Body = unknown> {
  body: Body
  contentType?: QueueContentType
  delaySeconds?: number
}

/** One entry of wrangler's `queues.consumers`. */
export interface ConsumerSettings {
  readonly queue: string
  /** The kind of consumer; only workers are supported. Default `"worker"`. */
  readonly type?: "worker" | undefined
  /** The largest number of messages in a batch, 1 to 100. Default 10. */
  readonly max_batch_size?: number | undefined
  /** How long a batch waits for further messages, in seconds, 0 to 60. Default 5. */
  readonly max_batch_timeout?: number | undefined
  /** How often a failed message is retried. Default 3. */
  readonly max_retries?: number | undefined
  /** The name of the dead-letter queue; `discard` keeps no dead letters. Default: `<queue>.dlq`. */
  readonly dead_letter_queue?: string | undefined
  /** How many batches may be in progress at a time, 1 to 1,000. `null` counts as missing. Default 1. */
  readonly max_concurrency?: number | null | undefined
  /** The delay of retries in seconds, 0 to 86,400. Default 0. */
  readonly retry_delay?: number | undefined
}

/** One entry of wrangler's `queues.producers`. */
export interface ProducerSettings {
  readonly queue: string
  /** The name of the binding in `env` on Cloudflare. Requeue ignores it. */
  readonly binding?: string | undefined
  /** The delay of sends in seconds, 0 to 86,400. Default 0. */
  readonly delivery_delay?: number | undefined
}

/** Returns the kind of seconds, with fractions. */
const seconds = (max: number): OptionKind.OptionKind => ({
  expected: `a number of seconds from 0 to ${max}`,
  holds: (value) => typeof value === "number" && value >= 0 && value <= max
})

const day = 86_400

const concurrency = OptionKind.whole(1, 1000)

export const consumerKinds: OptionNames.Of<ConsumerSettings> = {
  queue: OptionKind.text,
  type: OptionKind.oneOf(["worker"]),
  max_batch_size: OptionKind.whole(1, 100),
  max_batch_timeout: seconds(60),
  max_retries: OptionKind.whole(0),
  dead_letter_queue: {
    expected: "a queue's name of 1 to 200 characters without broken surrogates",
    holds: (value) => typeof value === "string" && QueueDefinition.isName(value)
  },
  max_concurrency: { ...concurrency, holds: (value) => value === null || concurrency.holds(value) },
  retry_delay: seconds(day)
}

export const workerKind: OptionKind.OptionKind = {
  expected: "an object with a queue handler",
  holds: (value) => {
    const { queue }: { readonly queue?: unknown } = Object(value)
    return typeof queue === "function"
  }
}

export const producerKinds: OptionNames.Of<ProducerSettings> = {
  queue: OptionKind.text,
  binding: OptionKind.text,
  delivery_delay: seconds(day)
}

/** Values are checked by the send, which has separate errors for them. */
export const batchKinds: OptionNames.Of<QueueSendBatchOptions> = { delaySeconds: true }
export const sendKinds: OptionNames.Of<QueueSendOptions> = { contentType: true, ...batchKinds }
export const entryKinds: OptionNames.Of<MessageSendRequest> = { body: true, ...sendKinds }

/** Returns the error of a batch that Cloudflare refuses: without messages, or with an undefined body. */
export const bodyRefusal = (
  call: string,
  queue: string,
  messages: ReadonlyArray<MessageSendRequest>
): TypeError | undefined => {
  const refusal = (problem: string) => new TypeError(`${call} (queue ${queue}): ${problem}`)
  if (messages.length === 0) {
    return refusal("messages must have at least one entry, got none. Call it only with messages")
  }
  const index = messages.findIndex(({ body }) => body === undefined)
  if (index < 0) return undefined
  const at = call === "queue.sendBatch" ? `messages[${index}]: ` : ""
  return refusal(`${at}body must not be undefined, got undefined. Send null instead`)
}

const secondsOf = (wanted: unknown): number => {
  try {
    return Number(wanted ?? Number.NaN)
  } catch {
    return Number.NaN
  }
}

/**
 * Returns a function that retries with the nearest delay that the broker can keep. It refuses options that are not an object,
 * as Cloudflare does. After the batch it ignores the options, because no caller would catch an exception.
 */
export const retrier =
  (isOver: () => boolean) =>
  (options: QueueRetryOptions | null | undefined, retry: (options: Handler.RetryOptions) => void): void => {
    if (isOver()) return retry({})
    if (options !== undefined && options !== null && typeof options !== "object") {
      const remedy = "Write { delaySeconds: 2 }"
      throw new TypeError(
        `retry: options must be an object with delaySeconds, got ${OptionKind.show(options)}. ${remedy}`
      )
    }
    const wanted = secondsOf(options?.delaySeconds)
    const delay = Number.isNaN(wanted) ? undefined : { seconds: Math.min(Math.max(wanted, 0), day) }
    try {
      retry({ delay })
    } catch (error) {
      if (!(error instanceof Delay.InvalidDelay)) throw error
      retry({ delay: error.limit })
    }
  }
