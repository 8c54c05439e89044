/** Requeue, through its Promise face. */
import * as SqsBroker from "@requeue/adapter-sqs/SqsBroker"
import { Codec, QueueDefinition } from "@requeue/core"
import { connect, type Received } from "@requeue/core/promise"
import type { Workload } from "../../Contender.ts"
import * as PromiseFace from "../promiseFace.ts"
import type { Transit } from "../transit.ts"
import * as Calls from "./calls.ts"
import * as Failing from "./failing.ts"
import type * as Jobs from "./jobs.ts"

/** The queues exist already, as for all contenders. */
const open = ({ polls, url }: Pick<Jobs.Consume, "polls" | "url">, visibilityTimeout = 30_000) =>
  connect(SqsBroker.layer({ url, queues: "use", pollers: polls, waitTime: 1000, visibilityTimeout }))

const textOf = (queue: string) => QueueDefinition.make(queue, { codec: Codec.text })

const optionsOf = ({ batch, polls }: Jobs.Consume): PromiseFace.Options =>
  batch ? { batch: { maxBatchSize: 10, maxBatchTimeout: 50 }, concurrency: polls } : { concurrency: polls * 10 }

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  const calls = Calls.count()
  await using requeue = await open(job)
  await PromiseFace.consume(requeue, textOf(job.queue), optionsOf(job), meter)
  calls.report(meter, job.messages + job.warmUp)
}

export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const failing = Failing.make(job, meter)
  await using requeue = await open(job, job.visibilityTimeout)
  const source = textOf(job.queue)
  const handle = (message: Received<string>): void => {
    if (!failing.handle(message.id, message.attempts)) message.retry({ delay: job.delay })
  }
  const options = optionsOf(job)
  if ("batch" in options) {
    await requeue.consumeBatch(source, options, async ({ messages }) => messages.forEach(handle))
  } else {
    await requeue.consume(source, options, async (message) => handle(message))
  }
  await meter.done
  failing.report()
}

export const transit: Workload<Transit & Jobs.Consume> = async (job, meter) => {
  await using requeue = await open(job)
  await PromiseFace.transit(requeue, job, { concurrency: job.polls * 10 }, meter)
}

export const { roundTrips, sends } = PromiseFace.scaling(
  ({ url }) => connect(SqsBroker.layer({ url, waitTime: 1000 })),
  (queue, n) => `${queue}-${n}`
)
