/** This project, through its Promise face. */
import * as NsqBroker from "@requeue/adapter-nsq/NsqBroker"
import * as Codec from "@requeue/core/Codec"
import { connect } from "@requeue/core/promise"
import * as QueueDefinition from "@requeue/core/QueueDefinition"
import type { Workload } from "../../Contender.ts"
import * as Lateness from "../lateness.ts"
import type * as Jobs from "./jobs.ts"

const bytesOf = (queue: string) => QueueDefinition.make(queue, { codec: Codec.bytes })

export const consume: Workload<Jobs.Consume> = async ({ batch, body, maxInFlight, queue, url }, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url }))
  const source = body === "json" ? QueueDefinition.make(queue) : bytesOf(queue)
  // A consumer holds its concurrency and one more: what is in progress, and what is being filled.
  if (batch) {
    const policy = { maxBatchSize: maxInFlight / 2, maxBatchTimeout: 50 }
    await requeue.consumeBatch(source, { batch: policy }, async ({ messages }) => meter.tick(messages.length))
  } else {
    await requeue.consume(source, { concurrency: maxInFlight - 1 }, async () => meter.tick())
  }
  await meter.done
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url }))
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

export const retry: Workload<Jobs.Retry> = async ({ delay, maxInFlight, queue, url }, meter) => {
  await using requeue = await connect(NsqBroker.layer({ url }))
  const lateness = Lateness.make()
  await requeue.consume(bytesOf(queue), { concurrency: maxInFlight - 1 }, async (message) => {
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
