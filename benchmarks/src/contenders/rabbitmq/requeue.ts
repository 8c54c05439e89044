/** This project, through its Promise face. */
import { setInterval } from "node:timers/promises"
import * as RabbitMqBroker from "@requeue/adapter-rabbitmq/RabbitMqBroker"
import * as Backoff from "@requeue/core/Backoff"
import * as Codec from "@requeue/core/Codec"
import { connect, type Received } from "@requeue/core/promise"
import * as QueueDefinition from "@requeue/core/QueueDefinition"
import type { Workload } from "../../Contender.ts"
import { spread } from "../../statistics.ts"
import * as Lateness from "../lateness.ts"
import type * as Jobs from "./jobs.ts"

/** The queues are there already, like everybody else's; delays are declared when they are needed. */
const open = (url: string, queue: string) => {
  const existing = { assert: "passive" } as const
  return connect(RabbitMqBroker.layer({ url, queues: { [queue]: existing, [`${queue}.dlq`]: existing } }))
}

const bytesOf = (queue: string) => QueueDefinition.make(queue, { codec: Codec.bytes })

export const consume: Workload<Jobs.Consume> = async ({ batch, body, prefetch, queue, url }, meter) => {
  await using requeue = await open(url, queue)
  const source = body === "json" ? QueueDefinition.make(queue) : bytesOf(queue)
  // A consumer holds its concurrency and one more: what is in progress, and what is being filled.
  if (batch) {
    const policy = { maxBatchSize: prefetch / 2, maxBatchTimeout: 50 }
    await requeue.consumeBatch(source, { batch: policy }, async ({ messages }) => meter.tick(messages.length))
  } else {
    await requeue.consume(source, { concurrency: prefetch - 1 }, async () => meter.tick())
  }
  await meter.done
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  await using requeue = await open(url, queue)
  const target = bytesOf(queue)
  const body = new Uint8Array(size).fill(120)
  let left = messages + warmUp
  const line = async (): Promise<void> => {
    while (left-- > 0) {
      await requeue.send(target, body)
      meter.tick()
    }
  }
  await Promise.all(Array.from({ length: inFlight }, line))
}

export const retry: Workload<Jobs.Retry> = async ({ delay, failing, prefetch, queue, url }, meter) => {
  await using requeue = await open(url, queue)
  const lateness = Lateness.make()
  let arrived = 0
  const handler = async (message: Received<Uint8Array>): Promise<void> => {
    if (message.attempts > 1) {
      lateness.came(message.id)
    } else if (arrived++ % 100 < failing) {
      lateness.due(message.id, delay)
      return message.retry()
    }
    meter.tick()
  }
  meter.begin()
  const policy = { maxRetries: 1, backoff: Backoff.constant(delay) }
  await requeue.consume(bytesOf(queue), { concurrency: prefetch - 1, retry: policy }, handler)
  await meter.done
  lateness.report(meter)
}

/** The policy knows all of the delays, the handler chooses. */
export const delays: Workload<Jobs.Delays> = async ({ prefetch, queue, url, ...job }, meter) => {
  await using requeue = await open(url, queue)
  const mixed = Lateness.mixed(job.delays)
  const lateness = Lateness.make()
  const handler = async (message: Received<Uint8Array>): Promise<void> => {
    if (message.attempts > 1) {
      lateness.came(message.id)
      return meter.tick()
    }
    const delay = mixed()
    lateness.due(message.id, delay, `${delay} ms`)
    message.retry({ delay })
  }
  meter.begin()
  const all = job.delays.split(",").map(Number)
  const policy = { maxRetries: all.length, backoff: Backoff.sequence(all) }
  await requeue.consume(bytesOf(queue), { concurrency: prefetch - 1, retry: policy }, handler)
  await meter.done
  lateness.report(meter)
}

/** Sends and handles at a constant rate; looks at the resident memory at every portion. */
export const soak: Workload<Jobs.Soak> = async ({ delay, failing, messages, perSecond, queue, url, warmUp }, meter) => {
  await using requeue = await open(url, queue)
  const target = bytesOf(queue)
  const resident: Array<number> = []
  let arrived = 0
  await requeue.consume(target, { concurrency: 50 }, async (message) => {
    if (message.attempts === 1 && arrived++ % 100 < failing) return message.retry({ delay })
    meter.tick()
  })
  const portion = Array.from({ length: perSecond / 10 }, () => ({ body: new Uint8Array(256) }))
  let left = messages + warmUp
  for await (const _ of setInterval(100)) {
    await requeue.sendBatch(target, portion)
    resident.push(process.memoryUsage.rss() / 2 ** 20)
    left -= portion.length
    if (left <= 0) break
  }
  await meter.done
  const fifth = Math.ceil(resident.length / 5)
  meter.figure("resident after a fifth, MB", spread(resident.slice(fifth, 2 * fifth)).median)
  meter.figure("resident at the end, MB", spread(resident.slice(-fifth)).median)
}
