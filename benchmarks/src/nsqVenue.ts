/** An nsqd on its own core, with a fresh topic and channel for every round. */
import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as NsqBroker from "@requeue/adapter-nsq/NsqBroker"
import { start } from "@requeue/brokers"
import { bytes, connect, queue as define } from "@requeue/core/promise"
import { contents } from "./contents.ts"
import * as Pinning from "./pinning.ts"
import type { Case, Venue } from "./Suite.ts"

const channel = "bench"

/** Messages that are sent together. */
const portion = 1000

/** https://nsq.io/components/nsqd.html#post-mpub, in its binary form. */
const multiple = (body: Buffer, messages: number): Buffer => {
  const head = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  head.writeUInt32BE(messages)
  length.writeUInt32BE(body.length)
  return Buffer.concat([head, ...Array.from({ length: messages }, () => [length, body]).flat()])
}

export const open = async (pinning: Pinning.Pinning | undefined, say: (line: string) => void): Promise<Venue> => {
  // Waiting messages are in memory: the disk must not affect the result.
  const broker = await start("nsq", { say, flags: { "mem-queue-size": "1000000" } })
  const { managementUrl: http, url } = broker.nodes[0]!
  for (const node of [...broker.nodes, broker.lookupd!]) Pinning.moveBroker(pinning, node.pid())

  const post = async (path: string, body?: Buffer): Promise<void> => {
    const response = await fetch(`${http}${path}`, { method: "POST", ...(body === undefined ? {} : { body }) })
    if (!response.ok) throw new Error(`nsqd ${path}: ${response.status} ${await response.text()}`)
  }

  /** As any producer sends them, or as Requeue does, with an envelope. */
  const fill = async (topic: string, messages: number, { body, sender }: { body: Buffer; sender: string }) => {
    const portions = Array.from({ length: Math.ceil(messages / portion) }, (_, n) =>
      Math.min(portion, messages - n * portion)
    )
    if (sender === "requeue") {
      await using requeue = await connect(NsqBroker.layer({ url }))
      const target = define(`${topic}/${channel}`, { codec: bytes })
      for (const count of portions)
        await requeue.sendBatch(
          target,
          Array.from({ length: count }, () => ({ body }))
        )
    } else for (const count of portions) await post(`mpub?topic=${topic}&binary=true`, multiple(body, count))
  }

  return {
    facts: { nsq: broker.version },
    servers: Pinning.pidsOf(broker.nodes),
    prepare: async ({ job, messages, warmUp }: Case, entry) => {
      const topic = `bench-${randomBytes(4).toString("hex")}`
      const { age = 0, filled = false, sender = "raw", size = 256 } = { ...job, ...entry.job }
      await post(`topic/create?topic=${topic}`)
      await post(`channel/create?topic=${topic}&channel=${channel}`)
      if (filled === true)
        await fill(topic, messages + warmUp, { body: contents(Number(size)), sender: String(sender) })
      await sleep(Number(age))
      return {
        job: { url, queue: `${topic}/${channel}` },
        clear: async () => {
          const stats = await fetch(`${http}stats?format=json`)
          const { topics } = (await stats.json()) as { readonly topics: ReadonlyArray<{ readonly topic_name: string }> }
          for (const { topic_name: name } of topics) {
            if (name.startsWith(topic)) await post(`topic/delete?topic=${name}`)
          }
        }
      }
    },
    close: broker.dispose
  }
}
