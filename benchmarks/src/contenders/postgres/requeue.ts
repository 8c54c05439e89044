/** Requeue, through its Promise face. */
import * as PostgresBroker from "@requeue/adapter-postgres/PostgresBroker"
import { connect } from "@requeue/core/promise"
import type { Scaling } from "../jobs.ts"
import * as PromiseFace from "../promiseFace.ts"
import { type Body, held, workloads } from "./workloads.ts"

const queue = "work"

export const { consume, deliver, publish, publishBatches } = workloads(async ({ schema, url }) => {
  const requeue = await connect(PostgresBroker.layer({ url, schema }))
  return {
    send: (body) => requeue.send(queue, body),
    sendBatch: (bodies) =>
      requeue.sendBatch(
        queue,
        bodies.map((body) => ({ body }))
      ),
    consume: ({ batch, window }, handle) => {
      const prefetch = held * window
      return batch
        ? requeue.consumeBatch<Body>(queue, { batch: { maxBatchSize: window }, prefetch }, async ({ messages }) =>
            handle(messages.map(({ body }) => body))
          )
        : requeue.consume<Body>(queue, { concurrency: window, prefetch }, async ({ body }) => handle([body]))
    },
    close: () => requeue.close()
  }
})

export const { roundTrips, sends } = PromiseFace.scaling((job: Scaling & { readonly schema?: string }) =>
  connect(PostgresBroker.layer({ url: job.url, ...(job.schema === undefined ? {} : { schema: job.schema }) }))
)
