/** The memory broker: every message is confirmed, counted, and settled as on any other. */
import * as MemoryBroker from "@requeue/adapter-memory/MemoryBroker"
import { connect } from "@requeue/core/promise"
import type { Workload } from "../../Contender.ts"
import * as PromiseFace from "../promiseFace.ts"
import type * as Jobs from "./jobs.ts"

const queue = PromiseFace.bytesOf("work")
const body = new Uint8Array(256)

/** In portions, to avoid measuring one array of all. */
const portion = 1000

const filled = async (messages: number) => {
  const requeue = await connect(MemoryBroker.layer())
  for (let sent = 0; sent < messages; sent += portion) {
    const entries = Array.from({ length: Math.min(portion, messages - sent) }, () => ({ body }))
    await requeue.sendBatch(queue, entries)
  }
  return requeue
}

/** The measurement begins with the consumer: the messages are there. */
export const single: Workload<Jobs.Memory> = async ({ backlog = 0, concurrency, messages, warmUp }, meter) => {
  await using requeue = await filled(messages + warmUp + backlog)
  await PromiseFace.consume(requeue, queue, { concurrency }, meter)
}

export const batch: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  await using requeue = await filled(messages + warmUp)
  const policy = { maxBatchSize: concurrency, maxBatchTimeout: 0 }
  await PromiseFace.consume(requeue, queue, { batch: policy }, meter)
}

/** Acks each message of a batch separately, or all of them at once. */
export const acking: Workload<Jobs.Batches> = async ({ maxBatchSize, messages, ofEach, warmUp }, meter) => {
  await using requeue = await filled(messages + warmUp)
  await requeue.consumeBatch(queue, { batch: { maxBatchSize, maxBatchTimeout: 0 } }, async (batch) => {
    if (ofEach) for (const message of batch.messages) message.ack()
    else batch.ackAll()
    meter.tick(batch.messages.length)
  })
  await meter.done
}

export const { roundTrips, sends } = PromiseFace.scaling(() => connect(MemoryBroker.layer()))
