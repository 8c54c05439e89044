/** The raw client, as its tutorial shows it: the measure of all others. */
import amqp, { type Channel, type ConfirmChannel, type ConsumeMessage } from "amqplib"
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
const waitQueue = async (
  channel: Channel,
  queue: string,
  delay: number | undefined,
  atLeastOnce: boolean
): Promise<string> => {
  const { queue: waiting } = await channel.assertQueue(`${queue}.wait`, {
    durable: true,
    arguments: {
      "x-queue-type": "quorum",
      "x-dead-letter-exchange": "",
      "x-dead-letter-routing-key": queue,
      ...(atLeastOnce ? { "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" } : {}),
      ...(delay === undefined ? {} : { "x-message-ttl": delay })
    }
  })
  return waiting
}

/**
 * Written by hand: publish a copy to a wait queue, wait for the confirmation, acknowledge. A single delay is the queue's
 * time to live; several are a time to live on each message, and what is behind a longer one waits as long as that.
 */
const again = async (
  channel: ConfirmChannel,
  queue: string,
  messages: number,
  { atLeastOnce = false, delays, failing }: Jobs.Retry,
  tick: () => void
): Promise<Lateness.Lateness> => {
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const all = Lateness.list(delays)
  const fixed = all.length === 1 ? all[0] : undefined
  const waiting = await waitQueue(channel, queue, fixed, atLeastOnce)
  const lateness = Lateness.make()
  const next = Lateness.turns(all, failing)
  let left = messages
  const end = (message: ConsumeMessage): void => {
    channel.ack(message)
    tick()
    if (--left === 0) resolve()
  }
  const onMessage = (message: ConsumeMessage | null): void => {
    if (message === null) return
    const { content, properties } = message
    const id = String(properties.messageId)
    if (properties.headers?.["attempt"] === 2) {
      lateness.came(id)
      return end(message)
    }
    const delay = next()
    if (delay === undefined) return end(message)
    lateness.due(id, delay)
    const expiration = fixed === undefined ? { expiration: String(delay) } : {}
    const copy = { ...properties, ...expiration, persistent: true, headers: { ...properties.headers, attempt: 2 } }
    channel.publish("", waiting, content, copy, (error) => {
      if (error) throw error
      channel.ack(message)
    })
  }
  const { consumerTag } = await channel.consume(queue, onMessage)
  await done
  await channel.cancel(consumerTag)
  await channel.deleteQueue(waiting)
  return lateness
}

export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const { channel, connection } = await open(job.url, job.prefetch)
  await again(channel, job.rehearsal, job.rehearsed, job, () => {})
  meter.begin()
  const lateness = await again(channel, job.queue, job.messages, job, meter.tick)
  lateness.report(meter)
  await connection.close()
}
