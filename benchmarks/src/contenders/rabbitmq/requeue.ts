/** Requeue, through its Promise face. */
import { setInterval } from "node:timers/promises"
import * as RabbitMqBroker from "@requeue/adapter-rabbitmq/RabbitMqBroker"
import { Backoff } from "@requeue/core"
import { connect, type Received, type Requeue } from "@requeue/core/promise"
import type { Workload } from "../../Contender.ts"
import { spread } from "../../statistics.ts"
import * as Lateness from "../lateness.ts"
import * as PromiseFace from "../promiseFace.ts"
import type { Transit } from "../transit.ts"
import { feed } from "./feeding.ts"
import type * as Jobs from "./jobs.ts"

/** The queues exist already, as for all contenders; delays are declared when they are needed. */
const open = ({ topology = "auto", url }: Pick<Jobs.Retry, "topology" | "url">, ...queues: ReadonlyArray<string>) => {
  const existing = queues.flatMap((queue) => [queue, `${queue}.dlq`])
  const asThere = Object.fromEntries(existing.map((queue) => [queue, { assert: "passive" } as const]))
  return connect(RabbitMqBroker.layer({ url, topology, queues: asThere }))
}

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  await using requeue = await open(job, job.queue)
  meter.begin()
  await PromiseFace.consume(
    requeue,
    PromiseFace.sourceOf(job.queue, job.body),
    PromiseFace.within(job.prefetch, job),
    meter
  )
}

export const publish: Workload<Jobs.Publish> = async (job, meter) => {
  await using requeue = await open(job, job.queue)
  await PromiseFace.publish(requeue, job, meter)
}

/** The policy has all of the delays; the handler chooses one. */
const again = async (
  requeue: Requeue,
  queue: string,
  messages: number,
  { delays, failing, prefetch }: Jobs.Retry,
  tick: () => void
): Promise<Lateness.Lateness> => {
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const all = Lateness.list(delays)
  const lateness = Lateness.make()
  const next = Lateness.turns(all, failing)
  let left = messages
  const handler = async (message: Received<Uint8Array>): Promise<void> => {
    if (message.attempts > 1) {
      lateness.came(message.id)
    } else {
      const delay = next()
      if (delay !== undefined) {
        lateness.due(message.id, delay)
        return message.retry({ delay })
      }
    }
    tick()
    if (--left === 0) resolve()
  }
  const policy = { maxRetries: all.length, backoff: Backoff.sequence(all) }
  await using _ = await requeue.consume(
    PromiseFace.bytesOf(queue),
    { concurrency: prefetch - 1, retry: policy },
    handler
  )
  await done
  return lateness
}

export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  await using requeue = await open(job, job.queue, job.rehearsal)
  if (job.rehearsed > 0) await again(requeue, job.rehearsal, job.rehearsed, job, () => {})
  meter.begin()
  const [lateness] = await Promise.all([again(requeue, job.queue, job.messages, job, meter.tick), feed(job)])
  lateness.report(meter)
}

/** Sends and handles at a constant rate; reads the resident memory at every portion. */
export const soak: Workload<Jobs.Soak> = async ({ delay, failing, messages, perSecond, queue, url, warmUp }, meter) => {
  await using requeue = await open({ url }, queue)
  const target = PromiseFace.bytesOf(queue)
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

export const transit: Workload<Transit> = async (job, meter) => {
  await using requeue = await open(job, job.queue)
  await PromiseFace.transit(requeue, job, { concurrency: 99 }, meter)
}

/** The queues exist. Without the others that a retry or a dead letter needs, as no handler fails. */
export const { roundTrips, sends } = PromiseFace.scaling(({ url }) =>
  connect(RabbitMqBroker.layer({ url, assert: "never" }))
)
