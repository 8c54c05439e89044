/** graphile-worker, with the settings that its documentation recommends for speed. */
import { Logger, makeWorkerUtils, run } from "graphile-worker"
import { type Body, connections, held, workloads } from "./workloads.ts"

const queue = "work"

const logger = new Logger(() => () => {})

export const { consume, deliver, publish, publishBatches } = workloads(async ({ schema, url }) => {
  const common = { connectionString: url, schema, maxPoolSize: connections, logger }
  const utils = await makeWorkerUtils(common)
  await utils.migrate()
  return {
    send: (body) => utils.addJob(queue, body),
    sendBatch: (bodies) => utils.addJobs(bodies.map((payload) => ({ identifier: queue, payload }))),
    consume: ({ window }, handle) =>
      run({
        preset: {
          worker: {
            connectionString: url,
            schema,
            maxPoolSize: connections,
            concurrentJobs: window,
            localQueue: { size: held * window },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0
          }
        },
        logger,
        noHandleSignals: true,
        taskList: { [queue]: async (payload) => handle([payload as Body]) } // Sent above.
      }),
    // The consumer ends with the process.
    close: async () => utils.release()
  }
})
