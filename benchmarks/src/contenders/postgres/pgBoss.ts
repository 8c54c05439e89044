/** pg-boss. Its handlers receive arrays; each message is settled alone with `perJobResults`. */
import { PgBoss } from "pg-boss"
import { type Body, connections, held, workloads } from "./workloads.ts"

const queue = "work"

export const { consume, deliver, publish, publishBatches } = workloads(async ({ schema, url }) => {
  const boss = new PgBoss({ connectionString: url, schema, max: connections, useListenNotify: true })
  boss.on("error", () => {})
  await boss.start()
  await boss.createQueue(queue, { notify: true })
  return {
    send: (body) => boss.send(queue, body),
    sendBatch: (bodies) =>
      boss.insert(
        queue,
        bodies.map((data) => ({ data }))
      ),
    consume: ({ batch, window }, handle) => {
      const options = { batchSize: batch ? window : (held * window) / 2, localConcurrency: 2, burstWhenBatchFull: true }
      return batch
        ? boss.work<Body>(queue, options, async (jobs) => handle(jobs.map(({ data }) => data)))
        : boss.work<Body>(queue, { ...options, perJobResults: true }, async (jobs) =>
            jobs.map(({ data, id }) => {
              handle([data])
              return { id, status: "completed" as const }
            })
          )
    },
    close: () => boss.stop({ graceful: false })
  }
})
