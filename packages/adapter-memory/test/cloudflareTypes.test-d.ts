/**
 * A type test: what is written against Cloudflare's own types is accepted, and what we hand over is what they expect.
 * Nothing here runs; `npm run check` compiles it.
 */
import type {
  ExportedHandler,
  Message,
  MessageBatch,
  Queue,
  QueueMetrics,
  QueueSendResponse
} from "@cloudflare/workers-types"
import * as Cloudflare from "@requeue/cloudflare"
import type { Requeue } from "@requeue/core/promise"

declare const requeue: Requeue

interface Webhook {
  readonly url: string
}

interface Env {
  readonly ERRORS: Queue<string>
  readonly KEY: string
}

/** A worker as it stands in a project on Cloudflare. */
const worker = {
  async queue(batch, env, ctx) {
    for (const message of batch.messages) {
      ctx.waitUntil(env.ERRORS.send(message.body.url, { contentType: "text", delaySeconds: 5 }))
      message.retry({ delaySeconds: message.attempts * 10 })
    }
    batch.ackAll()
  }
} satisfies ExportedHandler<Env, Webhook>

const handlers: ExportedHandler<Env, Webhook> = worker

export const env: Env = { ERRORS: Cloudflare.producer<string>(requeue, "errors"), KEY: "secret" }

export const accepted = [
  Cloudflare.consume(requeue, { queue: "webhooks" }, worker, env),
  Cloudflare.consume(requeue, { queue: "webhooks" }, handlers, env),
  Cloudflare.consume<Webhook, Env>(requeue, { queue: "webhooks", max_batch_size: 50 }, handlers, env)
]

// What we hand over is what Cloudflare's types expect.
export const message = (ours: Cloudflare.Message<Webhook>): Message<Webhook> => ours
export const batch = (ours: Cloudflare.MessageBatch<Webhook>): MessageBatch<Webhook> => ours
export const queue = (ours: Cloudflare.Queue<Webhook>): Queue<Webhook> => ours
export const metrics = (ours: Cloudflare.QueueMetrics): QueueMetrics => ours
export const response = (ours: Cloudflare.QueueSendResponse): QueueSendResponse => ours

// And the other way round: an env that was made for Cloudflare suits code that is typed with our names.
export const theirMessage = (theirs: Message<Webhook>): Cloudflare.Message<Webhook> => theirs
export const theirBatch = (theirs: MessageBatch<Webhook>): Cloudflare.MessageBatch<Webhook> => theirs
export const theirQueue = (theirs: Queue<Webhook>): Cloudflare.Queue<Webhook> => theirs

// What does not fit is refused.
export const refused = [
  // @ts-expect-error a binding that takes numbers is no binding for strings
  (): Env => ({ ERRORS: Cloudflare.producer<number>(requeue, "errors"), KEY: "secret" }),
  // @ts-expect-error the worker needs KEY
  () => Cloudflare.consume(requeue, { queue: "webhooks" }, worker, { ERRORS: env.ERRORS }),
  // @ts-expect-error the settings are named as in wrangler's configuration
  () => Cloudflare.consume(requeue, { queue: "webhooks", maxBatchSize: 50 }, worker, env),
  // @ts-expect-error the queue must be named
  () => Cloudflare.consume(requeue, { max_batch_size: 50 }, worker, env),
  // @ts-expect-error there is no such content type
  (ours: Cloudflare.Queue<string>) => ours.send("x", { contentType: "xml" }),
  // @ts-expect-error bodies are webhooks and no numbers
  (ours: Cloudflare.Message<Webhook>): Message<number> => ours
]
