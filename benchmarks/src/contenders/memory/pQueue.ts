/** p-queue: a queue of functions that return promises. */
import PQueue from "p-queue"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

export const single: Workload<Jobs.Memory> = async ({ concurrency, messages, warmUp }, meter) => {
  const queue = new PQueue({ concurrency, autoStart: false })
  for (let n = 0; n < messages + warmUp; n++) queue.add(async () => meter.tick()).catch(() => {})
  queue.start()
  await meter.done
}
