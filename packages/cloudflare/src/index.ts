/**
 * Runs Cloudflare Queues code unchanged on any broker: workers with a `queue(batch, env, ctx)` handler, and code that sends
 * through a queue binding.
 *
 * Settings have the names and units of wrangler's `queues.consumers` and `queues.producers`. The behaviour differs from
 * Cloudflare's runtime in these points, which avoid lost messages and surprises:
 *
 * - Without `dead_letter_queue`, dead letters go to `<queue>.dlq`; Cloudflare deletes them.
 * - The first `retry` or `retryAll` with a delay sets it, as Cloudflare documents; in its runtime a later call overwrites it.
 * - `max_concurrency` defaults to 1; Cloudflare scales automatically.
 * - `send` and `sendBatch` reject for unknown options; Cloudflare ignores them. `retry` and `retryAll` change an impossible
 *   delay to the nearest possible one, because an exception would fail the rest of the batch.
 *
 * https://developers.cloudflare.com/queues/configuration/javascript-apis/
 */
import { type Delay, type Handler, QueueDefinition, RetryPolicy } from "@requeue/core"
import { Counting, OptionNames } from "@requeue/core/port"
import { codec, mediaTypes } from "./internal/codec.ts"
import * as Options from "./internal/options.ts"
import type {
  ConsumerSettings,
  MessageSendRequest,
  ProducerSettings,
  QueueRetryOptions,
  QueueSendBatchOptions,
  QueueSendOptions
} from "./internal/options.ts"
import type { CountsOptions, Requeue, Worker } from "@requeue/core/promise"

export type {
  ConsumerSettings,
  MessageSendRequest,
  ProducerSettings,
  QueueContentType,
  QueueRetryOptions,
  QueueSendBatchOptions,
  QueueSendOptions
} from "./internal/options.ts"

/**
 * The metrics of a queue. `backlogCount` is the number of messages that the broker can count. In the metrics of a batch
 * and in the response of `send` and `sendBatch`, `backlogCount` is 0 if the broker does not answer within a second.
 * `backlogBytes` is always 0.
 */
export interface QueueMetrics {
  backlogCount: number
  backlogBytes: number
  oldestMessageTimestamp?: Date
}

/** The response of `send` and `sendBatch`. */
export interface QueueSendResponse {
  metadata: { metrics: QueueMetrics }
}

/** A queue binding, as {@link producer} makes it. */
export interface Queue<Body = unknown> {
  metrics(): Promise<QueueMetrics>
  send(message: Body, options?: QueueSendOptions): Promise<QueueSendResponse>
  sendBatch(messages: Iterable<MessageSendRequest<Body>>, options?: QueueSendBatchOptions): Promise<QueueSendResponse>
}

/** A message as a handler sees it. Only the first call of `ack` or `retry` counts. */
export interface Message<Body = unknown> {
  readonly id: string
  readonly timestamp: Date
  readonly body: Body
  readonly attempts: number
  retry(options?: QueueRetryOptions): void
  ack(): void
}

/** A batch as a handler sees it. `ackAll` and `retryAll` apply to messages that were neither acked nor retried. */
export interface MessageBatch<Body = unknown> {
  readonly messages: ReadonlyArray<Message<Body>>
  readonly queue: string
  readonly metadata: { metrics: QueueMetrics }
  retryAll(options?: QueueRetryOptions): void
  ackAll(): void
}

/** The third argument of a handler. */
export interface ExecutionContext {
  /** Makes the batch wait for a promise, and fail if it rejects. */
  waitUntil(promise: Promise<any>): void // `any`, as in Cloudflare's types.
  /** Does nothing, because there is no origin to pass through to. */
  passThroughOnException(): void
}

/** The part of a worker's default export that queues need. */
export interface QueueWorker<Body = unknown, Env = unknown> {
  queue?(batch: MessageBatch<Body>, env: Env, ctx: ExecutionContext): void | Promise<void>
}

/** Returns seconds with their unit, so errors show the value as written. */
const duration = (seconds: number | undefined): Delay.DurationInput | undefined =>
  typeof seconds === "number" ? { seconds } : (seconds ?? undefined)

const metricsOf = async (requeue: Requeue, queue: string, options?: CountsOptions): Promise<QueueMetrics> => {
  const { delayed = 0, inFlight = 0, ready = 0 } = await requeue.counts(queue, options)
  return { backlogCount: ready + delayed + inFlight, backlogBytes: 0 }
}

const unknown: QueueMetrics = { backlogCount: 0, backlogBytes: 0 }

/** Returns metrics that accompany a batch or a response. They never fail, because counts are optional there. */
const metadataOf = async (requeue: Requeue, queue: string): Promise<{ metrics: QueueMetrics }> => ({
  metrics: await metricsOf(requeue, queue, { timeout: Counting.brief }).catch(() => ({ ...unknown }))
})

/**
 * Makes a queue binding, such as `env.MY_QUEUE` on Cloudflare.
 *
 * Its sends reject as `Requeue.send` does; the error shows the delay in seconds. As on Cloudflare, they reject with a
 * TypeError for a batch without messages, or for an undefined body.
 *
 * @throws RangeError when a setting is unknown, of the wrong kind or out of range
 */
export const producer = <Body = unknown>(requeue: Requeue, settings: ProducerSettings | string): Queue<Body> => {
  const given: ProducerSettings = typeof settings === "string" ? { queue: settings } : settings
  OptionNames.check("Cloudflare.producer", given, Options.producerKinds, given?.queue)
  const { delivery_delay, queue } = given
  const delay = duration(delivery_delay)
  const definition = QueueDefinition.make(queue, { codec, delay })
  const toEntry = ({ body, contentType: type = "json", delaySeconds }: MessageSendRequest<Body>) => ({
    body: { type, body },
    headers: { "content-type": mediaTypes[type] },
    delay: duration(delaySeconds)
  })
  const check = (call: string, options: object | undefined, kinds: Parameters<typeof OptionNames.refusal>[2]) => {
    if (options !== undefined) OptionNames.orThrow(OptionNames.refusal(call, options, kinds, queue))
  }
  const sendAll = async (
    call: string,
    messages: ReadonlyArray<MessageSendRequest<Body>>,
    options?: QueueSendBatchOptions
  ): Promise<QueueSendResponse> => {
    OptionNames.orThrow(Options.bodyRefusal(call, queue, messages))
    await requeue.sendBatch(definition, messages.map(toEntry), { delay: duration(options?.delaySeconds) })
    return { metadata: await metadataOf(requeue, queue) }
  }
  return {
    metrics: () => metricsOf(requeue, queue),
    sendBatch: async (messages, options) => {
      check("queue.sendBatch", options, Options.batchKinds)
      const entries = Array.from(messages)
      OptionNames.orThrow(OptionNames.entries("queue.sendBatch", "messages", entries, Options.entryKinds, queue))
      return sendAll("queue.sendBatch", entries, options)
    },
    send: async (body, options) => {
      check("queue.send", options, Options.sendKinds)
      return sendAll("queue.send", [{ ...options, body }])
    }
  }
}

/**
 * Runs a Cloudflare worker's queue handler.
 *
 * The handler gets `env` unchanged: put {@link producer}s and its other bindings there.
 *
 * Rejects with a RangeError when a setting is unknown, of the wrong kind or out of range, or the worker has no `queue`
 * handler.
 *
 * @example
 * ```ts
 * import * as Cloudflare from "@requeue/cloudflare"
 * import { connect } from "@requeue/core/promise"
 *
 * const worker: Cloudflare.QueueWorker<{ readonly url: string }, { readonly ERRORS: Cloudflare.Queue }> = {
 *   async queue(batch, env) {
 *     for (const message of batch.messages) {
 *       if (message.body.url === "") await env.ERRORS.send({ id: message.id })
 *       message.ack()
 *     }
 *   }
 * }
 * await using requeue = await connect("memory:")
 * const env = { ERRORS: Cloudflare.producer(requeue, "errors") }
 * await using running = await Cloudflare.consume(requeue, { queue: "webhooks", max_batch_size: 50 }, worker, env)
 * ```
 */
export const consume = async <Body = unknown, Env = unknown>(
  requeue: Requeue,
  settings: ConsumerSettings,
  worker: QueueWorker<Body, Env>,
  env: Env
): Promise<Worker> => {
  OptionNames.check("Cloudflare.consume", settings, Options.consumerKinds, settings?.queue)
  OptionNames.orThrow(OptionNames.argument("Cloudflare.consume", "worker", worker, Options.workerKind, settings.queue))
  const policy = RetryPolicy.make({ maxRetries: settings.max_retries ?? 3 })
  const options = {
    // Set after `make`, because the option `deadLetter: "discard"` is not a queue's name.
    retry: { ...policy, deadLetter: { ...policy.deadLetter, queue: settings.dead_letter_queue } },
    retryDelay: duration(settings.retry_delay),
    batch: { maxBatchSize: settings.max_batch_size, maxBatchTimeout: duration(settings.max_batch_timeout) },
    concurrency: settings.max_concurrency ?? undefined
  }
  const definition = QueueDefinition.make<Body>(settings.queue, { codec })
  return requeue.consumeBatch<Body>(definition, options, async (batch, { signal }) => {
    const metadata = await metadataOf(requeue, batch.queue)
    let hasEnded = false
    const retryWith = Options.retrier(() => hasEnded || signal.aborted)
    const messages = toMessageBatch(batch, metadata, retryWith)
    try {
      await run((ctx) => worker.queue!(messages, env, ctx))
    } finally {
      hasEnded = true
    }
  })
}

const toMessageBatch = <Body>(
  batch: Handler.Batch<Body>,
  metadata: MessageBatch["metadata"],
  retryWith: ReturnType<typeof Options.retrier>
): MessageBatch<Body> => ({
  queue: batch.queue,
  metadata,
  messages: batch.messages.map((message) => ({
    id: message.id,
    timestamp: new Date(message.timestamp),
    body: message.body,
    attempts: message.attempts,
    ack: () => message.ack(),
    retry: (options) => retryWith(options, (bounded) => message.retry(bounded))
  })),
  ackAll: () => batch.ackAll(),
  retryAll: (options) => retryWith(options, (bounded) => batch.retryAll(bounded))
})

/** Waits for the handler and all promises of `waitUntil`, nested ones included. Then throws the first failure, if any. */
const run = async (handler: (ctx: ExecutionContext) => void | Promise<void>): Promise<void> => {
  const failures: Array<{ readonly error: unknown }> = []
  const watched: Array<Promise<unknown>> = []
  const waitUntil = (promise: Promise<unknown>): void =>
    void watched.push(Promise.resolve(promise).catch((error: unknown) => failures.push({ error })))
  const handle = async () => handler({ waitUntil, passThroughOnException: () => {} })
  waitUntil(handle())
  for (const promise of watched) await promise
  for (const { error } of failures) throw error
}
