/** The raw client, as its tutorial shows it: the baseline of the others. */
import amqp, { type Channel, type ConfirmChannel, type ConsumeMessage } from "amqplib"
import type { Workload } from "../../Contender.ts"
import * as Lateness from "../lateness.ts"
import * as Transit from "../transit.ts"
import { feed } from "./feeding.ts"
import type * as Jobs from "./jobs.ts"

const open = async (url: string, prefetch: number, noDelay = false) => {
  const connection = await amqp.connect(url, { noDelay })
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
  meter.begin()
  await channel.consume(queue, onMessage)
  await meter.done
  await connection.close()
}

/** The properties of a message. */
type Properties = () => amqp.Options.Publish

/** As Requeue sends it: with an id, a timestamp and a content type. */
const named: Properties = () => ({
  persistent: true,
  mandatory: true,
  contentType: "application/octet-stream",
  messageId: crypto.randomUUID(),
  timestamp: Math.floor(Date.now() / 1000)
})

/** `queueOf` returns the queue of the n-th message. */
const publishTo =
  (queueOf: (job: Jobs.PublishToMany, n: number) => string, properties: Properties): Workload<Jobs.PublishToMany> =>
  async (job, meter) => {
    const { inFlight, messages, size, url, warmUp } = job
    const { channel, connection } = await open(url, 0)
    const body = Buffer.alloc(size, 120)
    let sent = 0
    const next = (): void => {
      if (sent >= messages + warmUp) return
      channel.publish("", queueOf(job, sent++), body, properties(), (error) => {
        if (error) throw error
        meter.tick()
        next()
      })
    }
    meter.begin()
    for (let n = 0; n < inFlight; n++) next()
    await meter.done
    await connection.close()
  }

export const publish = publishTo(({ queue }) => queue, named)

/** The plain call: a persistent body. A message that no queue takes is lost. */
export const publishBody = publishTo(
  ({ queue }) => queue,
  () => ({ persistent: true })
)

export const publishToMany = publishTo(({ queue, queues }, n) => `${queue}.${n % queues}`, named)

/** A queue whose messages return to theirs when their delay is over: the queue's delay, else the message's. */
const waitQueue = async (
  channel: Channel,
  queue: string,
  delay: number | undefined,
  atLeastOnce: boolean
): Promise<string> => {
  const { queue: waiting } = await channel.assertQueue(`${queue}.wait${delay === undefined ? "" : `.${delay}`}`, {
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
 * Written by hand: publish a copy to a wait queue, wait for the confirmation, acknowledge. A single delay is the queue's time to
 * live. Several have one queue each, or are a time to live on each message of one queue, in which a message waits for longer ones
 * before it.
 */
const again = async (
  channel: ConfirmChannel,
  queue: string,
  messages: number,
  { atLeastOnce = false, delays, failing, isEach = false }: Jobs.Retry,
  tick: () => void
): Promise<Lateness.Lateness> => {
  const { promise: done, resolve } = Promise.withResolvers<void>()
  const all = Lateness.list(delays)
  const isFixed = isEach || all.length === 1
  const waiting = new Map<number | undefined, string>()
  for (const delay of isFixed ? all : [undefined]) {
    waiting.set(delay, await waitQueue(channel, queue, delay, atLeastOnce))
  }
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
    const expiration = isFixed ? {} : { expiration: String(delay) }
    const copy = { ...properties, ...expiration, persistent: true, headers: { ...properties.headers, attempt: 2 } }
    channel.publish("", waiting.get(isFixed ? delay : undefined)!, content, copy, (error) => {
      if (error) throw error
      channel.ack(message)
    })
  }
  const { consumerTag } = await channel.consume(queue, onMessage)
  await done
  await channel.cancel(consumerTag)
  for (const each of waiting.values()) await channel.deleteQueue(each)
  return lateness
}

export const retry: Workload<Jobs.Retry> = async (job, meter) => {
  const { channel, connection } = await open(job.url, job.prefetch)
  if (job.rehearsed > 0) await again(channel, job.rehearsal, job.rehearsed, job, () => {})
  meter.begin()
  const [lateness] = await Promise.all([again(channel, job.queue, job.messages, job, meter.tick), feed(job)])
  lateness.report(meter)
  await connection.close()
}

const transitWith =
  (noDelay: boolean): Workload<Transit.Transit> =>
  async (job, meter) => {
    const transit = Transit.make(job, meter)
    const { channel, connection } = await open(job.url, 100, noDelay)
    await channel.consume(job.queue, (message) => {
      if (message === null) return
      transit.came(message.content.toString("latin1"))
      channel.ack(message)
    })
    await transit.send(
      (body) =>
        new Promise<void>((resolve, reject) => {
          const done = (cause: unknown): void => (cause ? reject(new Error("not confirmed", { cause })) : resolve())
          channel.sendToQueue(job.queue, Buffer.from(body), { persistent: true }, done)
        })
    )
    await meter.done
    transit.report()
    await connection.close()
  }

/** By default the socket collects small frames for up to 40 ms, which saves CPU. */
export const transit = transitWith(false)

/** As Requeue connects. */
export const transitAtOnce = transitWith(true)
