/**
 * Miniflare's queue, which runs the handler of a Cloudflare Worker in `workerd`: a separate process, whose CPU and heap do not
 * count here. The Worker fills its queue itself, and reports its count at both ends of the measurement.
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
    // Otherwise it asks the network for its location.
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
