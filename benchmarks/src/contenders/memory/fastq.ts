/** fastq's promise face: a queue of functions' arguments, without any of a broker's semantics. */
import fastq from "fastq"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

export const single: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  const queue = fastq.promise(async (_body: Uint8Array) => meter.tick(), concurrency)
  const body = new Uint8Array(256)
  queue.pause()
  for (let n = 0; n < messages + warmUp; n++) queue.push(body).catch(() => {})
  queue.resume()
  await meter.done
}
