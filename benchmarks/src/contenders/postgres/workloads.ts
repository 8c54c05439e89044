/** The workloads on PostgreSQL, which each library does with the same few calls. */
import { setInterval } from "node:timers/promises"
import { Client } from "pg"
import type { Workload } from "../../Contender.ts"
import type { Meter } from "../../Meter.ts"
import { quantile } from "../../statistics.ts"
import type { Work } from "../jobs.ts"
import { publishing } from "../publishing.ts"

/** A round's place on the server. */
export interface Place extends Work {
  readonly url: string
  readonly schema: string
}

export interface Body {
  /** When it was sent, in milliseconds. */
  readonly at: number
  readonly text: string
}

export interface Consume {
  /** Maximum number of messages in progress. */
  readonly window: number
  /** Whether the handler receives batches, which succeed or fail as a whole. */
  readonly batch: boolean
}

export interface Library {
  readonly send: (body: Body) => Promise<unknown>
  readonly sendBatch: (bodies: ReadonlyArray<Body>) => Promise<unknown>
  /** Settles everything as done. */
  readonly consume: (options: Consume, handle: (bodies: ReadonlyArray<Body>) => void) => Promise<unknown>
  readonly close: () => Promise<unknown>
}

/** Connections of a pool. Requeue opens as many at most. */
export const connections = 5

/** How many messages a consumer takes from the server for each one that it handles: they wait in its process. */
export const held = 5

const text = "x".repeat(256)
const body = (): Body => ({ at: performance.now(), text })
const bodies = (count: number): ReadonlyArray<Body> => Array.from({ length: count }, body)

const reportLatency = (meter: Meter, values: ReadonlyArray<number>): void => {
  meter.figure("p50, ms", quantile(values, 0.5))
  meter.figure("p99, ms", quantile(values, 0.99))
}

/** Sends through `library`, this many calls at a time, and reports how long a call takes. */
const sending = async (job: Work & { readonly inFlight: number }, meter: Meter, send: () => Promise<unknown>) => {
  const took: Array<number> = []
  await publishing(job, meter, async () => {
    const began = performance.now()
    await send()
    took.push(performance.now() - began)
  })
  reportLatency(meter, took.slice(job.warmUp))
}

/** Messages that are sent together before a round. */
const portion = 500

/** Statistics of the planner, as a queue in use has them. */
const analyze = async (url: string): Promise<void> => {
  const client = new Client(url)
  await client.connect()
  await client.query("VACUUM ANALYZE")
  await client.end()
}

/** Returns the workloads of a library. */
export const workloads = (open: (place: Place) => Promise<Library>) => {
  const using =
    <J extends Place>(run: (library: Library, job: J, meter: Meter) => Promise<void>): Workload<J> =>
    async (job, meter) => {
      const library = await open(job)
      await run(library, job, meter)
      await library.close()
    }
  return {
    publish: using<Place & { readonly inFlight: number }>((library, job, meter) =>
      sending(job, meter, () => library.send(body()))
    ),

    publishBatches: using<Place & { readonly size: number }>(async (library, { messages, size, warmUp }, meter) => {
      const calls = { messages: messages / size, warmUp: warmUp / size, inFlight: 1 }
      await sending(calls, { ...meter, tick: () => meter.tick(size) }, () => library.sendBatch(bodies(size)))
    }),

    consume: using<Place & Consume>(async (library, job, meter) => {
      for (let left = job.messages + job.warmUp; left > 0; left -= portion) {
        await library.sendBatch(bodies(Math.min(portion, left)))
      }
      await analyze(job.url)
      meter.begin()
      await library.consume(job, (done) => meter.tick(done.length))
      await meter.done
    }),

    /** At a constant rate: the time from a send to its handler. */
    deliver: using<Place & Consume & { readonly perSecond: number }>(async (library, job, meter) => {
      const took: Array<number> = []
      await library.consume(job, (done) => {
        for (const { at } of done) took.push(performance.now() - at)
        meter.tick(done.length)
      })
      const all = job.messages + job.warmUp
      const began = performance.now()
      let sent = 0
      for await (const _ of setInterval(5)) {
        const due = Math.min(all, Math.floor(((performance.now() - began) / 1000) * job.perSecond))
        // Its consumer receives it, or the round never ends.
        for (; sent < due; sent++) void library.send(body())
        if (sent === all) break
      }
      await meter.done
      reportLatency(meter, took.slice(job.warmUp))
    })
  }
}
