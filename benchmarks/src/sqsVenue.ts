/** A server that speaks SQS's protocol on its own core, with a fresh queue for every round. */
import { randomBytes } from "node:crypto"
import { CreateQueueCommand, DeleteQueueCommand, SendMessageBatchCommand } from "@aws-sdk/client-sqs"
import { start } from "@requeue/brokers"
import { contents } from "./contents.ts"
import { connect } from "./contenders/sqs/client.ts"
import * as Pinning from "./pinning.ts"
import type { Case, Venue } from "./Suite.ts"

/** The maximum number of messages of one call. */
const batch = 10

/** Concurrent senders that fill a queue. */
const senders = 8

export const open = async (pinning: Pinning.Pinning | undefined, say: (line: string) => void): Promise<Venue> => {
  // Always the same one, without the strict proxy in between.
  const broker = await start("sqs", { say, version: "fauxqs" })
  for (const node of broker.nodes) Pinning.moveBroker(pinning, node.pid())
  const client = connect(broker.url)

  const create = async (QueueName: string): Promise<string> => {
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName }))
    return QueueUrl!
  }

  const fill = async (QueueUrl: string, messages: number, size: number): Promise<void> => {
    const MessageBody = contents(size).toString()
    let left = messages
    const sender = async (): Promise<void> => {
      while (left > 0) {
        const count = Math.min(batch, left)
        left -= count
        const Entries = Array.from({ length: count }, (_, n) => ({ Id: String(n), MessageBody }))
        await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
      }
    }
    await Promise.all(Array.from({ length: senders }, sender))
  }

  return {
    facts: { sqs: broker.version },
    servers: Pinning.pidsOf(broker.nodes),
    prepare: async ({ job, messages, warmUp }: Case, entry) => {
      const queue = `bench-${randomBytes(4).toString("hex")}`
      const { filled = true, size = 256 } = { ...job, ...entry.job }
      const queueUrl = await create(queue)
      const deadLetters = await create(`${queue}-dlq`)
      if (filled === true) await fill(queueUrl, messages + warmUp, Number(size))
      return {
        job: { url: broker.url, queue, queueUrl },
        clear: async () => {
          for (const QueueUrl of [queueUrl, deadLetters]) await client.send(new DeleteQueueCommand({ QueueUrl }))
        }
      }
    },
    close: async () => {
      client.destroy()
      await broker.dispose()
    }
  }
}
