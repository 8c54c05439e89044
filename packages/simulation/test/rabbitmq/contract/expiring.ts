/** Rules of times to live and of dead letters. */
import * as Version from "../../../src/servers/rabbitmq/Version.ts"
import { row, type Tools } from "./bench.ts"

const dlx = "https://www.rabbitmq.com/docs/dlx"
const ttl = "https://www.rabbitmq.com/docs/ttl"
const quorum = { "x-queue-type": "quorum" }
const classic = { "x-queue-type": "classic" }

type Arguments = Readonly<Record<string, unknown>>

/** A queue that dead-letters straight into another queue. */
const pair = async ({ queue }: Tools, args: Arguments = classic) => {
  const dead = await queue(classic)
  const name = await queue({ "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, ...args })
  return { dead, name }
}

const withoutTime = ({ time, ...record }: Arguments): Arguments => ({ ...record, hasTime: time !== undefined })

/** The deaths of the first message in a queue, without times. */
const deaths = async ({ take }: Tools, queue: string) => {
  const { seen } = await take(queue, 1)
  const { headers, message } = seen[0]!
  const records = headers["x-death"] as ReadonlyArray<Arguments> // The server's own.
  return {
    records: records.map(withoutTime),
    headers,
    message
  }
}

const rejectOne = async ({ take }: Tools, queue: string) => {
  const { channel, seen } = await take(queue, 1)
  channel.reject(seen[0]!.message as never, false)
  await channel.close()
}

/** The rows of a server. */
export const rows = (version: string) => {
  const is43 = Version.isAtLeast(version, "4.3.0")
  return [
    row(
      "a queue's messages expire in order",
      ttl,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...quorum, "x-message-ttl": 100 })
        for (const id of ["a", "b", "c"]) await tools.send(name, id)
        return tools.ids(dead, 3)
      },
      ["a", "b", "c"]
    ),
    row(
      "classic: only the head of a queue expires",
      `${ttl}#per-message-ttl-caveats`,
      async (tools) => {
        const { dead, name } = await pair(tools)
        await tools.send(name, "long", { expiration: "600" })
        await tools.send(name, "short", { expiration: "1" })
        return tools.ids(dead, 2)
      },
      ["long", "short"]
    ),
    row(
      "quorum: only the head of a queue expires",
      `${ttl}#per-message-ttl-caveats`,
      async (tools) => {
        const { dead, name } = await pair(tools, quorum)
        await tools.send(name, "long", { expiration: "600" })
        await tools.send(name, "short", { expiration: "1" })
        return tools.ids(dead, 2)
      },
      ["long", "short"]
    ),
    row(
      "the smaller time to live applies",
      ttl,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...classic, "x-message-ttl": 100_000 })
        await tools.send(name, "a", { expiration: "50" })
        return tools.ids(dead, 1)
      },
      ["a"]
    ),
    row(
      "a time to live of 0 expires unless it is delivered at once",
      ttl,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...classic, "x-message-ttl": 0 })
        const used = await tools.channel()
        let got: (id: unknown) => void = () => {}
        const delivered = new Promise<unknown>((resolve) => (got = resolve))
        await used.consume(name, (message) => got(message?.properties.messageId), { consumerTag: "t" })
        await tools.send(name, "a")
        const first = await delivered
        await used.cancel("t")
        await tools.send(name, "b")
        return [first, await tools.ids(dead, 1)]
      },
      ["a", ["b"]]
    ),
    row(
      "an expired message has a record and no expiration",
      dlx,
      async (tools) => {
        const { dead, name } = await pair(tools)
        await tools.send(name, "a", { expiration: "50" })
        const { headers, message, records } = await deaths(tools, dead)
        return [
          records,
          headers["x-first-death-reason"],
          headers["x-first-death-queue"] === name,
          headers["x-first-death-exchange"],
          message.properties.expiration ?? null,
          message.fields.exchange
        ]
      },
      [
        [
          {
            count: 1,
            reason: "expired",
            queue: "q2",
            exchange: "",
            "routing-keys": ["q2"],
            "original-expiration": "50",
            hasTime: true
          }
        ],
        "expired",
        true,
        "",
        null,
        ""
      ]
    ),
    row(
      "a rejected message has a record",
      dlx,
      async (tools) => {
        const { dead, name } = await pair(tools, quorum)
        await tools.send(name, "a")
        await rejectOne(tools, name)
        return (await deaths(tools, dead)).records
      },
      [{ count: 1, reason: "rejected", queue: "q2", exchange: "", "routing-keys": ["q2"], hasTime: true }]
    ),
    row(
      "a message that is too many has a record",
      dlx,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...classic, "x-max-length": 1 })
        for (const id of ["a", "b"]) await tools.send(name, id)
        const { message, records } = await deaths(tools, dead)
        return [message.properties.messageId, records.map(({ reason }) => reason)]
      },
      ["a", ["maxlen"]]
    ),
    row(
      "a message over the delivery limit has a record",
      dlx,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...quorum, "x-delivery-limit": 1 })
        await tools.send(name, "a")
        for (let times = 0; times < 2; times++) {
          const { cancel, channel, seen } = await tools.take(name, 1)
          await cancel()
          channel.reject(seen[0]!.message as never, true)
          await channel.close()
        }
        return (await deaths(tools, dead)).records.map(({ reason }) => reason)
      },
      ["delivery_limit"]
    ),
    row(
      "without a routing key a dead letter keeps its own",
      dlx,
      async (tools) => {
        const source = await tools.exchange("fanout")
        const dead = await tools.queue(classic)
        await tools.ask((channel) => channel.bindQueue(dead, source, ""))
        const name = await tools.queue({ ...classic, "x-dead-letter-exchange": source })
        await tools.send(name, "a")
        await rejectOne(tools, name)
        const { message } = await deaths(tools, dead)
        return [message.fields.exchange === source, message.fields.routingKey]
      },
      [true, "q3"]
    ),
    row(
      "a second death of the same kind is counted",
      dlx,
      async (tools) => {
        const back = tools.name("back")
        const dead = await tools.queue({ ...classic, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": back })
        await tools.ask((channel) =>
          channel.assertQueue(back, {
            arguments: { ...classic, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead }
          })
        )
        await tools.send(back, "a")
        for (const each of [back, dead, back]) await rejectOne(tools, each)
        return (await deaths(tools, dead)).records.map(({ count, queue, reason }) => [count, queue, reason])
      },
      [
        [2, "back", "rejected"],
        [1, "q1", "rejected"]
      ]
    ),
    row(
      "the first death stays the first",
      dlx,
      async (tools) => {
        const last = await tools.queue(classic)
        const middle = await tools.queue({
          ...classic,
          "x-message-ttl": 20,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": last
        })
        const name = await tools.queue({
          ...classic,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": middle
        })
        await tools.send(name, "a")
        await rejectOne(tools, name)
        const { headers, records } = await deaths(tools, last)
        return [
          headers["x-first-death-reason"],
          headers["x-first-death-queue"] === name,
          records.map(({ reason }) => reason)
        ]
      },
      ["rejected", true, ["expired", "rejected"]]
    ),
    row(
      "a message in a cycle without a rejection is dropped",
      `${dlx}#cycles`,
      async (tools) => {
        const name = tools.name("loop")
        const marker = await tools.queue(classic)
        await tools.ask((channel) =>
          channel.assertQueue(name, {
            arguments: {
              ...classic,
              "x-message-ttl": 20,
              "x-dead-letter-exchange": "",
              "x-dead-letter-routing-key": name
            }
          })
        )
        const { name: later } = {
          name: await tools.queue({
            ...classic,
            "x-message-ttl": 300,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": marker
          })
        }
        await tools.send(name, "a")
        await tools.send(later, "marker")
        await tools.ids(marker, 1)
        return (await tools.ready(name, 0)).messageCount
      },
      0
    ),
    row(
      "a rejected message may return to its queue",
      `${dlx}#cycles`,
      async (tools) => {
        const name = tools.name("loop")
        await tools.ask((channel) =>
          channel.assertQueue(name, {
            arguments: { ...classic, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name }
          })
        )
        await tools.send(name, "a")
        await rejectOne(tools, name)
        return tools.ids(name, 1)
      },
      ["a"]
    ),
    row(
      "deaths that a producer sends count before 4.0 only",
      "rabbit_dead_letter.erl, brokers.md 2.2",
      async (tools) => {
        const marker = await tools.queue(classic)
        const dead = await tools.queue(classic)
        const name = await tools.queue({
          ...classic,
          "x-message-ttl": 20,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": dead
        })
        const later = await tools.queue({
          ...classic,
          "x-message-ttl": 300,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": marker
        })
        const death = {
          queue: dead,
          reason: "expired",
          count: 1,
          exchange: "",
          "routing-keys": [dead],
          time: { "!": "timestamp", value: 1 }
        }
        await tools.send(name, "a", { headers: { "x-death": [death] } })
        await tools.send(later, "marker")
        await tools.ids(marker, 1)
        const count = Version.isAtLeast(version, "4.0.0") ? 1 : 0
        return (await tools.ready(dead, count)).messageCount
      },
      Version.isAtLeast(version, "4.0.0") ? 1 : 0
    ),
    row(
      "a dead letter without an exchange is lost",
      `${dlx}#safety`,
      async (tools) => {
        const name = await tools.queue({ ...quorum, "x-dead-letter-exchange": tools.name("none") })
        await tools.send(name, "a")
        await rejectOne(tools, name)
        return (await tools.ready(name, 0)).messageCount
      },
      0
    ),
    row(
      "an at-least-once dead letter without a queue is hidden",
      "https://www.rabbitmq.com/docs/quorum-queues#dead-lettering",
      async (tools) => {
        const name = await tools.queue({
          ...quorum,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish",
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": tools.name("none"),
          "x-message-ttl": 20
        })
        await tools.send(name, "a")
        return (await tools.ready(name, 0)).messageCount
      },
      0
    ),
    row(
      "an at-least-once dead letter reaches its queue",
      "https://www.rabbitmq.com/docs/quorum-queues#dead-lettering",
      async (tools) => {
        const { dead, name } = await pair(tools, {
          ...quorum,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish",
          "x-message-ttl": 20
        })
        for (const id of ["a", "b"]) await tools.send(name, id)
        return tools.ids(dead, 2)
      },
      ["a", "b"]
    ),
    row(
      "an unused queue expires with its messages, without dead letters",
      `${ttl}#queue-ttl`,
      async (tools) => {
        const { dead, name } = await pair(tools, { ...classic, "x-expires": 300 })
        await tools.send(name, "a")
        for (;;) {
          await tools.sleep(500)
          const told = String(await tools.ask((channel) => channel.checkQueue(name)))
          if (told.includes("NOT_FOUND")) break
        }
        return (await tools.ready(dead, 0)).messageCount
      },
      0
    ),
    row(
      "a queue with a consumer does not expire",
      `${ttl}#queue-ttl`,
      async (tools) => {
        const used = await tools.channel()
        // A busy machine must have time to consume it.
        const name = await tools.queue({ ...classic, "x-expires": 5000 })
        await used.consume(name, () => {})
        await tools.sleep(7000)
        return tools.ask((channel) => channel.checkQueue(name))
      },
      { queue: "q1", messageCount: 0, consumerCount: 1 }
    ),
    row(
      "a delayed retry returns after its delay from 4.3 on, and at once before",
      "https://www.rabbitmq.com/docs/quorum-queues#delayed-retry",
      async (tools) => {
        const name = await tools.queue({ ...quorum, "x-delayed-retry-type": "failed", "x-delayed-retry-min": 600 })
        await tools.send(name, "a")
        const { cancel, channel, seen } = await tools.take(name, 1)
        await cancel()
        channel.reject(seen[0]!.message as never, true)
        await channel.close()
        await tools.send(name, "b")
        return tools.ids(name, 2)
      },
      is43 ? ["b", "a"] : ["a", "b"]
    ),
    row(
      "a delayed retry does not delay a release if only failures are delayed",
      "https://www.rabbitmq.com/docs/quorum-queues#delayed-retry",
      async (tools) => {
        const name = await tools.queue({
          ...quorum,
          "x-delivery-limit": 9,
          "x-delayed-retry-type": "failed",
          "x-delayed-retry-min": 60_000
        })
        await tools.send(name, "a")
        const { cancel, channel, seen } = await tools.take(name, 1)
        await cancel()
        channel.nack(seen[0]!.message as never, false, true)
        await channel.close()
        return tools.ids(name, 1)
      },
      ["a"]
    )
  ]
}
