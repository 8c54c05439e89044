/** BullMQ: jobs in Redis. A worker takes them one by one, with fixed concurrency. */
import { Queue, Worker } from "bullmq"
import type { Workload } from "../../Contender.ts"
import type { Place, Publish } from "../jobs.ts"
import { publishing } from "../publishing.ts"
import * as Transit from "../transit.ts"

const connectionOf = (url: string) => ({ url, maxRetriesPerRequest: null })

export const consume: Workload<Place & { readonly prefetch: number }> = async ({ prefetch, queue, url }, meter) => {
  const options = { connection: connectionOf(url), concurrency: prefetch, removeOnComplete: { count: 0 } }
  const worker = new Worker(queue, async () => meter.tick(), options)
  await meter.done
  await worker.close(true)
}

export const publish: Workload<Publish> = async (job, meter) => {
  const queue = new Queue(job.queue, { connection: connectionOf(job.url) })
  await queue.waitUntilReady()
  const body = "x".repeat(job.size)
  await publishing(job, meter, () => queue.add("work", body))
  await queue.close()
}

export const transit: Workload<Transit.Transit> = async (job, meter) => {
  const transit = Transit.make(job, meter)
  const connection = connectionOf(job.url)
  const options = { connection, concurrency: 100, removeOnComplete: { count: 0 } }
  const worker = new Worker<string>(job.queue, async ({ data }) => transit.came(data), options)
  const queue = new Queue(job.queue, { connection })
  await Promise.all([worker.waitUntilReady(), queue.waitUntilReady()])
  await transit.send((body) => queue.add("work", body))
  await meter.done
  transit.report()
  await worker.close(true)
  await queue.close()
}
