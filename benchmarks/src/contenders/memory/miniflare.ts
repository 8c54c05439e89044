/**
 * Miniflare's queue, which runs the handler of a Cloudflare Worker in `workerd`: a process of its own, whose CPU and heap
 * are not in this one's. The Worker fills its queue itself, and tells its count at both ends of what is measured.
 */
import { Miniflare, type Request, Response } from "miniflare"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

const worker = `
let handled = 0
export default {
  async fetch(request, { QUEUE }) {
    const body = new Uint8Array(256)
    const batch = Array.from({ length: 100 }, () => ({ body, contentType: "bytes" }))
    for (let left = await request.json(); left > 0; left -= batch.length) await QUEUE.sendBatch(batch)
    return new Response()
  },
  async queue({ messages }, { METER, WARM_UP, ALL }) {
    const before = handled
    handled += messages.length
    for (const end of [WARM_UP, ALL]) {
      if (before < end && handled >= end) await METER.fetch("http://meter", { method: "POST", body: String(handled) })
    }
  }
}`

export const batch: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  let counted = 0
  const miniflare = new Miniflare({
    modules: true,
    // Else it asks the network where it is.
    cf: false,
    script: worker,
    bindings: { WARM_UP: warmUp, ALL: messages + warmUp },
    serviceBindings: {
      METER: async (request: Request) => {
        const handled = Number(await request.text())
        meter.tick(handled - counted)
        counted = handled
        return new Response()
      }
    },
    queueProducers: { QUEUE: "work" },
    queueConsumers: { work: { maxBatchSize: concurrency, maxBatchTimeout: 0 } }
  })
  await miniflare.dispatchFetch("http://worker", { method: "POST", body: String(messages + warmUp) })
  await meter.done
  await miniflare.dispose()
}
