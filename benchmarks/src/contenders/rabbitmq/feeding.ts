/** Messages at a constant rate, the same for all contenders: from the raw client, on a separate connection. */
import { setInterval } from "node:timers/promises"
import amqp from "amqplib"
import type * as Jobs from "./jobs.ts"

/** Milliseconds between two portions. */
const every = 10

/** Sends all of them; resolves when the last is confirmed. Without a rate, they are there already. */
export const feed = async ({ messages, perSecond, queue, url }: Jobs.Retry): Promise<void> => {
  if (perSecond === undefined) return
  const connection = await amqp.connect(url)
  const channel = await connection.createConfirmChannel()
  const body = Buffer.alloc(256, 120)
  const began = performance.now()
  let sent = 0
  for await (const _ of setInterval(every)) {
    const due = Math.min(messages, Math.floor(((performance.now() - began) / 1000) * perSecond))
    for (; sent < due; sent++) channel.publish("", queue, body, { persistent: true, messageId: `${queue}-${sent}` })
    if (sent === messages) break
  }
  await channel.waitForConfirms()
  await connection.close()
}
