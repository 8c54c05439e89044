/** Requeue, through its Promise face. */
import * as NsqBroker from "@requeue/adapter-nsq/NsqBroker"
import { connect } from "@requeue/core/promise"
import type { Workload } from "../../Contender.ts"
import * as Lateness from "../lateness.ts"
import * as PromiseFace from "../promiseFace.ts"
import type { Transit } from "../transit.ts"
import type * as Jobs from "./jobs.ts"

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url: job.url }))
  meter.begin()
  await PromiseFace.consume(
    requeue,
    PromiseFace.sourceOf(job.queue, job.body),
    PromiseFace.within(job.maxInFlight, job),
    meter
  )
}

export const publish: Workload<Jobs.Publish> = async (job, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url: job.url }))
  await PromiseFace.publish(requeue, job, meter)
}

export const retry: Workload<Jobs.Retry> = async ({ delay, maxInFlight, queue, url }, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url }))
  const lateness = Lateness.make()
  await requeue.consume(PromiseFace.bytesOf(queue), { concurrency: maxInFlight - 1 }, async (message) => {
    if (message.attempts === 1) {
      lateness.due(message.id, delay)
      return message.retry({ delay })
    }
    lateness.came(message.id)
    meter.tick()
  })
  await meter.done
  lateness.report(meter)
}

export const transit: Workload<Transit> = async (job, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url: job.url }))
  await PromiseFace.transit(requeue, job, { concurrency: 99 }, meter)
}

export const { roundTrips, sends } = PromiseFace.scaling(
  ({ url }) => connect(NsqBroker.layer({ url })),
  (queue, n) => queue.replace("/", `-${n}/`)
)
