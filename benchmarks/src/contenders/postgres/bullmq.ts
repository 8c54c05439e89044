/** BullMQ on PostgreSQL. */
import { createPostgresBackend, type Job, Queue, Worker } from "bullmq"
import { type Body, connections, workloads } from "./workloads.ts"

const name = "work"

export const { consume, deliver, publish, publishBatches } = workloads(async ({ schema, url }) => {
  const connection = { connectionString: url, schema, max: connections, migrate: true }
  const queue = new Queue(name, { connection }, createPostgresBackend)
  await queue.waitUntilReady()
  return {
    send: (body) => queue.add(name, body),
    sendBatch: (bodies) => queue.addBulk(bodies.map((data) => ({ name, data }))),
    consume: async ({ window }, handle) => {
      const options = { connection, concurrency: window, removeOnComplete: { count: 0 } }
      const worker = new Worker(name, async ({ data }: Job<Body>) => handle([data]), options, createPostgresBackend)
      await worker.waitUntilReady()
    },
    // The worker ends with the process.
    close: () => queue.close()
  }
})
