/** The memory broker: every message is confirmed, counted, and settled as on any other. */
import * as MemoryBroker from "@requeue/adapter-memory/MemoryBroker"
import * as Codec from "@requeue/core/Codec"
import { connect } from "@requeue/core/promise"
import * as QueueDefinition from "@requeue/core/QueueDefinition"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

const queue = QueueDefinition.make<Uint8Array>("work", { codec: Codec.bytes })
const body = new Uint8Array(256)

/** In portions, so that what is measured is not one array of all. */
const portion = 1000

const filled = async (messages: number) => {
  const requeue = await connect(MemoryBroker.layer())
  for (let sent = 0; sent < messages; sent += portion) {
    const entries = Array.from({ length: Math.min(portion, messages - sent) }, () => ({ body }))
    await requeue.sendBatch(queue, entries)
  }
  return requeue
}

/** What is measured begins with the consumer: the messages are there. */
export const single: Workload<Jobs.Memory> = async ({ backlog = 0, concurrency, messages, warmUp }, meter) => {
  await using requeue = await filled(messages + warmUp + backlog)
  await requeue.consume(queue, { concurrency }, async () => meter.tick())
  await meter.done
}

export const batch: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  await using requeue = await filled(messages + warmUp)
  const policy = { maxBatchSize: concurrency, maxBatchTimeout: 0 }
  await requeue.consumeBatch(queue, { batch: policy }, async (all) => meter.tick(all.messages.length))
  await meter.done
}
