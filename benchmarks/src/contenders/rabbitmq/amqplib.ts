/** The raw client, as its tutorial shows it: the measure of all others. */
import amqp, { type Channel, type ConsumeMessage } from "amqplib"
import type { Workload } from "../../Contender.ts"
import * as Lateness from "../lateness.ts"
import type * as Jobs from "./jobs.ts"

const open = async (url: string, prefetch: number) => {
  const connection = await amqp.connect(url)
  const channel = await connection.createConfirmChannel()
  await channel.prefetch(prefetch)
  return { connection, channel }
}

export const consume: Workload<Jobs.Consume> = async ({ body, prefetch, queue, url }, meter) => {
  const { channel, connection } = await open(url, prefetch)
  const handler = async (_message: unknown): Promise<void> => {}
  const bodyOf = (message: ConsumeMessage): unknown =>
    body === "json" ? JSON.parse(message.content.toString()) : message.content
  const onMessage = (message: ConsumeMessage | null): void => {
    if (message === null) return
    handler(bodyOf(message)).then(
      () => {
        channel.ack(message)
        meter.tick()
      },
      () => channel.nack(message)
    )
  }
  await channel.consume(queue, onMessage)
  await meter.done
  await connection.close()
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  const { channel, connection } = await open(url, 0)
  const body = Buffer.alloc(size, 120)
  const options = { persistent: true, mandatory: true, contentType: "application/octet-stream" }
  let sent = 0
  const next = (): void => {
    if (sent >= messages + warmUp) return
    const properties = { ...options, messageId: crypto.randomUUID(), timestamp: Math.floor(Date.now() / 1000) }
    sent++
    channel.publish("", queue, body, properties, (error) => {
      if (error) throw error
      meter.tick()
      next()
    })
  }
  for (let n = 0; n < inFlight; n++) next()
  await meter.done
  await connection.close()
}

/** A queue whose messages go back to theirs when they have waited. */
const waitQueue = async (channel: Channel, queue: string, delay: number | undefined): Promise<string> => {
  const { queue: waiting } = await channel.assertQueue(`${queue}.wait`, {
    durable: true,
    arguments: {
      "x-queue-type": "quorum",
      "x-dead-letter-exchange": "",
      "x-dead-letter-routing-key": queue,
      ...(delay === undefined ? {} : { "x-message-ttl": delay })
    }
  })
  return waiting
}

/** Written by hand: publish a copy to a queue with a time to live, wait for the confirmation, acknowledge. */
export const retry: Workload<Jobs.Retry> = async ({ delay, failing, prefetch, queue, url }, meter) => {
  const { channel, connection } = await open(url, prefetch)
  const waiting = await waitQueue(channel, queue, delay)
  const lateness = Lateness.make()
  let arrived = 0
  const onMessage = (message: ConsumeMessage | null): void => {
    if (message === null) return
    const id = String(message.properties.messageId)
    if (message.properties.headers?.["attempt"] === 2) {
      lateness.came(id)
      channel.ack(message)
      return meter.tick()
    }
    if (arrived++ % 100 >= failing) {
      channel.ack(message)
      return meter.tick()
    }
    lateness.due(id, delay)
    const headers = { ...message.properties.headers, attempt: 2 }
    channel.publish("", waiting, message.content, { ...message.properties, persistent: true, headers }, (error) => {
      if (error) throw error
      channel.ack(message)
    })
  }
  meter.begin()
  await channel.consume(queue, onMessage)
  await meter.done
  lateness.report(meter)
  await channel.deleteQueue(waiting)
  await connection.close()
}

/** One wait queue, a time to live on each message: what is behind a longer one waits as long as that. */
export const delays: Workload<Jobs.Delays> = async ({ prefetch, queue, url, ...job }, meter) => {
  const { channel, connection } = await open(url, prefetch)
  const waiting = await waitQueue(channel, queue, undefined)
  const mixed = Lateness.mixed(job.delays)
  const lateness = Lateness.make()
  const onMessage = (message: ConsumeMessage | null): void => {
    if (message === null) return
    const { content, properties } = message
    const id = String(properties.messageId)
    if (properties.headers?.["attempt"] === 2) {
      lateness.came(id)
      channel.ack(message)
      return meter.tick()
    }
    const delay = mixed()
    lateness.due(id, delay, `${delay} ms`)
    const copy = { ...properties, persistent: true, expiration: String(delay), headers: { attempt: 2 } }
    channel.publish("", waiting, content, copy, (error) => {
      if (error) throw error
      channel.ack(message)
    })
  }
  meter.begin()
  await channel.consume(queue, onMessage)
  await meter.done
  lateness.report(meter)
  await channel.deleteQueue(waiting)
  await connection.close()
}
