/** What Requeue's Promise face does on every broker. */
import { Codec, QueueDefinition } from "@requeue/core"
import type { Requeue } from "@requeue/core/promise"
import type { Workload } from "../Contender.ts"
import type { Meter } from "../Meter.ts"
import type { Handling, Publish, Scaling } from "./jobs.ts"
import { publishing } from "./publishing.ts"
import * as Transit from "./transit.ts"

export const bytesOf = (queue: string) => QueueDefinition.make(queue, { codec: Codec.bytes })

/** A queue of what the handler receives. */
export const sourceOf = (queue: string, body: Handling["body"]) =>
  body === "json" ? QueueDefinition.make(queue) : bytesOf(queue)

/** One message at a time, or batches. */
export type Options =
  | { readonly concurrency: number }
  | {
      readonly batch: { readonly maxBatchSize: number; readonly maxBatchTimeout: number }
      readonly concurrency?: number
    }

/** For a consumer that holds at most `window`: its concurrency, or the batches in progress and the next one. */
export const within = (window: number, { batch }: Pick<Handling, "batch">): Options =>
  batch ? { batch: { maxBatchSize: window / 2, maxBatchTimeout: 50 } } : { concurrency: window - 1 }

/** Takes everything, with a handler that awaits nothing. */
export const consume = async (
  requeue: Requeue,
  source: QueueDefinition.Input<any>,
  options: Options,
  meter: Meter
): Promise<void> => {
  if ("batch" in options) {
    await requeue.consumeBatch(source, options, async ({ messages }) => meter.tick(messages.length))
  } else {
    await requeue.consume(source, options, async () => meter.tick())
  }
  await meter.done
}

export const publish = async (requeue: Requeue, job: Publish, meter: Meter): Promise<void> => {
  const target = bytesOf(job.queue)
  const body = new Uint8Array(job.size).fill(120)
  await publishing(job, meter, () => requeue.send(target, body))
}

/** The maximum of a consumer; more messages wait on the broker. */
const maxConcurrency = 1000

const range = (length: number): ReadonlyArray<number> => Array.from({ length }, (_, n) => n)

/** Work in rotation over the queues of a job. `nameOf` names them if they are more than one. */
export const scaling = (
  open: (job: Scaling) => Promise<Requeue>,
  nameOf: (queue: string, n: number) => string = (queue, n) => `${queue}.${n}`
): Readonly<Record<"roundTrips" | "sends", Workload<Scaling>>> => {
  const prepare = ({ headers, queue, queues, size }: Scaling, requeue: Requeue) => {
    const targets = queues === 1 ? [bytesOf(queue)] : range(queues).map((n) => bytesOf(nameOf(queue, n)))
    const body = new Uint8Array(size).fill(120)
    const all = Object.fromEntries(range(headers).map((n) => [`header-${n}`, "value"]))
    const options = headers === 0 ? undefined : { headers: all }
    let turn = 0
    return { targets, send: () => requeue.send(targets[turn++ % queues]!, body, options) }
  }
  return {
    /** A consumer for each queue. A handled message starts the next send. */
    roundTrips: async (job, meter) => {
      await using requeue = await open(job)
      const { send, targets } = prepare(job, requeue)
      const { promise: failure, reject } = Promise.withResolvers<never>()
      let left = job.messages + job.warmUp
      const next = (): void => {
        if (left-- > 0) send().catch(reject)
      }
      const concurrency = Math.min(maxConcurrency, Math.ceil(job.inFlight / job.queues))
      const handler = async (): Promise<void> => {
        meter.tick()
        next()
      }
      await Promise.all(targets.map((target) => requeue.consume(target, { concurrency }, handler)))
      range(job.inFlight).forEach(next)
      await Promise.race([meter.done, failure])
    },
    sends: async (job, meter) => {
      await using requeue = await open(job)
      await publishing(job, meter, prepare(job, requeue).send)
    }
  }
}

export const transit = async (
  requeue: Requeue,
  job: Transit.Transit,
  options: Pick<Options, "concurrency">,
  meter: Meter
): Promise<void> => {
  const transit = Transit.make(job, meter)
  const target = QueueDefinition.make(job.queue, { codec: Codec.text })
  await requeue.consume(target, options, async ({ body }) => transit.came(body))
  await transit.send((body) => requeue.send(target, body))
  await meter.done
  transit.report()
}
