/** rascal: amqplib by configuration. */
import rascal from "rascal"
import type { Workload } from "../../Contender.ts"
import { publishing } from "../publishing.ts"
import type * as Jobs from "./jobs.ts"

/** The queue exists already, as for all contenders. */
const configure = (url: string, queue: string, rest: object) => ({
  vhosts: {
    "/": {
      connection: { url },
      queues: { [queue]: { assert: false, check: true } },
      ...rest
    }
  }
})

const open = async (config: object) => {
  const broker = await rascal.BrokerAsPromised.create(rascal.withDefaultConfig(config))
  broker.on("error", () => {})
  return broker
}

export const consume: Workload<Jobs.Consume> = async ({ prefetch, queue, url }, meter) => {
  const broker = await open(configure(url, queue, { subscriptions: { all: { queue, prefetch } } }))
  const handler = async (_content: unknown): Promise<void> => {}
  meter.begin()
  const subscription = await broker.subscribe("all")
  subscription.on("error", () => {})
  subscription.on("message", (_message, content, ackOrNack: (error?: unknown) => void) => {
    handler(content).then(() => {
      ackOrNack()
      meter.tick()
    }, ackOrNack)
  })
  await meter.done
  await broker.shutdown()
}

export const publish: Workload<Jobs.Publish> = async (job, meter) => {
  const { queue, size, url } = job
  const broker = await open(configure(url, queue, { publications: { one: { queue, confirm: true } } }))
  const body = Buffer.alloc(size, 120)
  await publishing(job, meter, async () => {
    const publication = await broker.publish("one", body)
    await new Promise((resolve, reject) => publication.on("success", resolve).on("error", reject))
  })
  await broker.shutdown()
}
