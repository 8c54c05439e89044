/** NSQ's own client, as its README shows it: the baseline of the others. */
import { Reader, Writer, type Message } from "nsqjs"
import type { Workload } from "../../Contender.ts"
import * as Lateness from "../lateness.ts"
import * as Transit from "../transit.ts"
import type * as Jobs from "./jobs.ts"

const fail = (error: Error): void => {
  throw error
}

const reading = (
  { maxInFlight, queue, url }: Pick<Jobs.Consume, "maxInFlight" | "queue" | "url">,
  onMessage: (message: Message) => void
): Reader => {
  const [topic, channel] = queue.split("/") as [string, string]
  const reader = new Reader(topic, channel, { nsqdTCPAddresses: [new URL(url).host], maxInFlight })
  reader.on("message", onMessage)
  reader.on("error", fail)
  reader.connect()
  return reader
}

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  const handler = async (_body: unknown): Promise<void> => {}
  const reader = reading(job, (message) => {
    handler(job.body === "json" ? message.json() : message.body).then(
      () => {
        message.finish()
        meter.tick()
      },
      () => message.requeue(0, false)
    )
  })
  await meter.done
  reader.close()
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  const { hostname, port } = new URL(url)
  const [topic] = queue.split("/") as [string]
  const body = Buffer.alloc(size, 120)
  const writer = new Writer(hostname, Number(port))
  let left = messages + warmUp
  const next = (): void => {
    if (left-- <= 0) return
    writer.publish(topic, body, (error) => {
      if (error) throw error
      meter.tick()
      next()
    })
  }
  writer.on("error", fail)
  writer.on("ready", () => {
    for (let n = 0; n < inFlight; n++) next()
  })
  writer.connect()
  await meter.done
  writer.close()
}

export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const lateness = Lateness.make()
  const reader = reading(job, (message) => {
    if (message.attempts === 1) {
      lateness.due(message.id, job.delay)
      return message.requeue(job.delay, false)
    }
    lateness.came(message.id)
    message.finish()
    meter.tick()
  })
  await meter.done
  lateness.report(meter)
  reader.close()
}

export const transit: Workload<Transit.Transit> = async (job, meter) => {
  const transit = Transit.make(job, meter)
  const reader = reading({ ...job, maxInFlight: 100 }, (message) => {
    transit.came(message.body.toString("latin1"))
    message.finish()
  })
  const { hostname, port } = new URL(job.url)
  const [topic] = job.queue.split("/") as [string]
  const writer = new Writer(hostname, Number(port))
  writer.on("error", fail)
  const ready = new Promise<void>((resolve) => writer.on("ready", resolve))
  writer.connect()
  await ready
  await transit.send(
    (body) =>
      new Promise<void>((resolve, reject) =>
        writer.publish(topic, Buffer.from(body), (error) => (error ? reject(error) : resolve()))
      )
  )
  await meter.done
  transit.report()
  writer.close()
  reader.close()
}
