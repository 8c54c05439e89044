/** Rules of deliveries, settlements and their counts. */
import * as Version from "../../../src/servers/rabbitmq/Version.ts"
import { row, type Seen, type Tools } from "./bench.ts"

const seen = "seen on 3.10.8 and 4.3.6"
const poison = "https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling"
const quorum = { "x-queue-type": "quorum" }
const classic = { "x-queue-type": "classic" }

/** The server's counts of a delivery. */
const counts = ({ headers, redelivered }: Seen) => [
  redelivered,
  headers["x-delivery-count"] ?? null,
  headers["x-acquired-count"] ?? null
]

type Settle = (channel: Awaited<ReturnType<Tools["channel"]>>, message: Seen) => Promise<void> | void

const release: Settle = (channel, { message }) => channel.nack(message as never, false, true) // The driver reads the tag.
const fail: Settle = (channel, { message }) => channel.reject(message as never, true) // The same.
const close: Settle = (channel) => channel.close()

/** Delivers a message, settles it in these ways, and returns the counts of each delivery. */
const lives = async ({ queue, send, take }: Tools, args: object, ways: ReadonlyArray<Settle>, options = {}) => {
  const name = await queue({ ...args })
  await send(name, "a", options)
  const found: Array<unknown> = []
  for (const way of ways) {
    const { cancel, channel, seen: messages } = await take(name, 1)
    await cancel()
    found.push(counts(messages[0]!))
    await way(channel, messages[0]!)
    if (way !== close) await channel.close()
  }
  const { seen: messages } = await take(name, 1)
  return [...found, counts(messages[0]!)]
}

/** Sends messages, takes some, and returns them one by one in this order; returns the order of the next deliveries. */
const order = async (
  { ids, queue, ready, send, take }: Tools,
  args: object,
  sent: ReadonlyArray<string>,
  returned: ReadonlyArray<number>
) => {
  const name = await queue({ ...args })
  for (const id of sent) await send(name, id)
  const { cancel, channel, seen: messages } = await take(name, returned.length)
  await cancel()
  for (const at of returned) void release(channel, messages[at]!)
  await channel.close()
  await ready(name, sent.length)
  return ids(name, sent.length)
}

/** The rows of a server. */
export const rows = (version: string) => {
  const is4 = Version.isAtLeast(version, "4.0.0")
  const is43 = Version.isAtLeast(version, "4.3.0")
  /** Counts after this many returns, of which this many are failures. */
  const after = (returns: number, failures: number) =>
    is43
      ? [returns > 0, failures > 0 ? failures : null, returns > 0 ? returns : null]
      : [returns > 0, returns > 0 ? returns : null, null]
  return [
    row(
      "messages are delivered in order",
      "https://www.rabbitmq.com/docs/queues#message-ordering",
      async ({ ids, queue, send }) => {
        const name = await queue(quorum)
        for (const id of ["a", "b", "c"]) await send(name, id)
        return ids(name, 3)
      },
      ["a", "b", "c"]
    ),
    row(
      "a consumer has no more deliveries than its prefetch",
      "https://www.rabbitmq.com/docs/consumer-prefetch",
      async ({ queue, ready, send, take }) => {
        const name = await queue(quorum)
        for (const id of ["a", "b", "c"]) await send(name, id)
        const { seen: messages } = await take(name, 2)
        return [messages.length, (await ready(name, 1)).messageCount]
      },
      [2, 1]
    ),
    row(
      "an ack makes room for the next delivery",
      "https://www.rabbitmq.com/docs/consumer-prefetch",
      async ({ channel, queue, send }) => {
        const name = await queue(quorum)
        for (const id of ["a", "b"]) await send(name, id)
        const used = await channel()
        await used.prefetch(1)
        const found: Array<unknown> = []
        await new Promise<void>((resolve) => {
          void used.consume(name, (message) => {
            found.push(message?.properties.messageId)
            used.ack(message!)
            if (found.length === 2) resolve()
          })
        })
        return found
      },
      ["a", "b"]
    ),
    row(
      "a passive declare counts ready messages and consumers",
      "https://www.rabbitmq.com/docs/queues#properties",
      async ({ queue, ready, send, take }) => {
        const name = await queue(classic)
        for (const id of ["a", "b", "c"]) await send(name, id)
        await take(name, 2)
        return ready(name, 1)
      },
      { queue: "q1", messageCount: 1, consumerCount: 1 }
    ),
    row(
      "a cancelled consumer keeps its deliveries",
      "https://www.rabbitmq.com/docs/consumers#unsubscribing",
      async ({ ask, channel, ids, queue, ready, send }) => {
        const name = await queue(quorum)
        await send(name, "a")
        const used = await channel()
        const delivered = new Promise<void>((resolve) => void used.consume(name, () => resolve(), { consumerTag: "t" }))
        await delivered
        await used.cancel("t")
        await send(name, "b")
        const left = await ready(name, 1)
        const first = await ask((other) => other.get(name)).then((message) => message !== false)
        await used.close()
        await ready(name, 2)
        return [left.messageCount, first, (await ids(name, 2)).map(String).toSorted()]
      },
      [1, true, ["a", "b"]]
    ),
    row(
      "a quorum queue counts a cancelled consumer with deliveries",
      "query_consumer_count in rabbit_fifo.erl",
      async ({ ask, channel, queue, send }) => {
        const name = await queue(quorum)
        await send(name, "a")
        const used = await channel()
        await new Promise<void>((resolve) => void used.consume(name, () => resolve(), { consumerTag: "t" }))
        await used.cancel("t")
        return ask((other) => other.checkQueue(name))
      },
      { queue: "q1", messageCount: 0, consumerCount: 1 }
    ),
    row(
      "a classic queue does not",
      seen,
      async ({ ask, channel, queue, send }) => {
        const name = await queue(classic)
        await send(name, "a")
        const used = await channel()
        await new Promise<void>((resolve) => void used.consume(name, () => resolve(), { consumerTag: "t" }))
        await used.cancel("t")
        return ask((other) => other.checkQueue(name))
      },
      { queue: "q1", messageCount: 0, consumerCount: 0 }
    ),
    row("cancelling an unknown consumer succeeds", seen, async ({ ask }) => ask((channel) => channel.cancel("none")), {
      consumerTag: "none"
    }),
    row(
      "the consumers of a deleted queue get a cancel",
      "https://www.rabbitmq.com/docs/consumer-cancel",
      async ({ ask, channel, queue }) => {
        const name = await queue(quorum)
        const used = await channel()
        let cancelled: (value: unknown) => void = () => {}
        const told = new Promise<unknown>((resolve) => (cancelled = resolve))
        await used.consume(name, cancelled)
        await ask((other) => other.deleteQueue(name))
        return told
      },
      null
    ),
    row(
      "a consumer tag is used once on a channel",
      seen,
      async ({ connection, queue }) => {
        const name = await queue(classic)
        const used = await (await connection()).channel()
        await used.consume(name, () => {}, { consumerTag: "t" })
        return used.consume(name, () => {}, { consumerTag: "t" }).catch(() => "the connection is closed")
      },
      "the connection is closed"
    ),
    row(
      "an exclusive consumer is alone",
      "https://www.rabbitmq.com/docs/consumers#exclusivity",
      async ({ ask, queue, take, send }) => {
        const name = await queue(classic)
        await send(name, "a")
        await take(name, 1)
        return ask((other) => other.consume(name, () => {}, { exclusive: true }))
      },
      `Operation failed: BasicConsume; 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - queue 'q1' in vhost '/' in exclusive use"`
    ),
    row(
      "get returns one message, or none",
      "https://www.rabbitmq.com/docs/consumers#polling",
      async ({ ask, queue, send }) => {
        const name = await queue(quorum)
        await send(name, "a")
        const get = () =>
          ask(async (channel) => {
            const message = await channel.get(name, { noAck: true })
            return message === false ? false : message.properties.messageId
          })
        return [await get(), await get()]
      },
      ["a", false]
    ),
    row(
      "a settlement of an unknown delivery closes the channel",
      "https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking",
      async ({ ask, queue }) => {
        const name = await queue(classic)
        return ask(async (channel) => {
          channel.ack({ fields: { deliveryTag: 5 } } as never) // The driver reads the tag.
          await channel.checkQueue(name)
        })
      },
      `Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - unknown delivery tag 5"`
    ),
    row(
      "a second ack closes the channel",
      "https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking",
      async ({ queue, send, take }) => {
        const name = await queue(quorum)
        await send(name, "a")
        const { channel, seen: messages } = await take(name, 1)
        const error = new Promise<string>((resolve) => channel.on("error", ({ message }) => resolve(message)))
        for (let times = 0; times < 2; times++) channel.ack(messages[0]!.message as never)
        return error
      },
      `Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - unknown delivery tag 1"`
    ),
    row(
      "a multiple ack settles all before it",
      "https://www.rabbitmq.com/docs/confirms#consumer-acks-multiple-parameter",
      async ({ ids, queue, ready, send, take }) => {
        const name = await queue(quorum)
        for (const id of ["a", "b", "c"]) await send(name, id)
        const { channel, seen: messages } = await take(name, 3)
        channel.ack(messages[1]!.message as never, true)
        await channel.close()
        await ready(name, 1)
        return ids(name, 1)
      },
      ["c"]
    ),
    row(
      "acking everything without a delivery is no error",
      seen,
      async ({ ask, queue }) => {
        const name = await queue(classic)
        return ask(async (channel) => {
          channel.ackAll()
          return (await channel.checkQueue(name)).messageCount
        })
      },
      0
    ),
    row(
      "closing a channel returns its deliveries",
      "https://www.rabbitmq.com/docs/confirms#automatic-requeueing",
      (tools) => lives(tools, classic, [close]),
      [
        [false, null, null],
        [true, null, null]
      ]
    ),
    row("quorum: a failure counts", poison, (tools) => lives(tools, quorum, [fail, fail]), [
      [false, null, null],
      after(1, 1),
      after(2, 2)
    ]),
    row(
      "quorum: a release counts as a failure before 4.3 only",
      poison,
      (tools) => lives(tools, quorum, [release, release]),
      [[false, null, null], after(1, 0), after(2, 0)]
    ),
    row("quorum: the end of a channel is a failure", poison, (tools) => lives(tools, quorum, [close, release]), [
      [false, null, null],
      after(1, 1),
      after(2, 1)
    ]),
    row("classic: no return is counted", poison, (tools) => lives(tools, classic, [fail, release]), [
      [false, null, null],
      [true, null, null],
      [true, null, null]
    ]),
    row(
      "a producer's delivery count is shown at the first delivery",
      "brokers.md 2.3, seen on 3.10.8",
      async ({ queue, send, take }) => {
        const name = await queue(quorum)
        await send(name, "a", { headers: { "x-delivery-count": 7 } })
        const { seen: messages } = await take(name, 1)
        return counts(messages[0]!)
      },
      [false, 7, null]
    ),
    row(
      "the limit of failures makes a dead letter, after one delivery more",
      poison,
      async ({ ids, queue, send, take }) => {
        const dead = await queue(classic)
        const name = await queue({
          ...quorum,
          "x-delivery-limit": 2,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": dead
        })
        await send(name, "a")
        for (let deliveries = 0; deliveries < 3; deliveries++) {
          const { cancel, channel, seen: messages } = await take(name, 1)
          await cancel()
          await fail(channel, messages[0]!)
          await channel.close()
        }
        return ids(dead, 1)
      },
      ["a"]
    ),
    row(
      "the limit of failures drops a message without a dead-letter exchange",
      "brokers.md 2.3",
      async ({ queue, ready, send, take }) => {
        const name = await queue({ ...quorum, "x-delivery-limit": 1 })
        await send(name, "a")
        for (let deliveries = 0; deliveries < 2; deliveries++) {
          const { cancel, channel, seen: messages } = await take(name, 1)
          await cancel()
          await fail(channel, messages[0]!)
          await channel.close()
        }
        return (await ready(name, 0)).messageCount
      },
      0
    ),
    row(
      "a classic queue returns messages to their places",
      "brokers.md 2.3, seen on 3.10.8",
      (tools) => order(tools, classic, ["a", "b", "c"], [1, 0]),
      ["a", "b", "c"]
    ),
    row(
      "a limited quorum queue delivers returned messages first, in the order of their returns",
      "brokers.md 2.3",
      (tools) => order(tools, { ...quorum, "x-delivery-limit": 9 }, ["a", "b", "c"], [1, 0]),
      ["b", "a", "c"]
    ),
    row(
      "before 4.0 an unlimited quorum queue appends returned messages",
      "brokers.md 2.3",
      (tools) => order(tools, quorum, ["a", "b", "c"], [0]),
      is4 ? ["a", "b", "c"] : ["b", "c", "a"]
    ),
    row(
      "get is a consumer of a quorum queue until it is settled",
      "rabbit_fifo.erl, inspect/browseSession.ts relies on it",
      async ({ ask, channel, queue, send }) => {
        const name = await queue(quorum)
        await send(name, "a")
        const used = await channel()
        await used.get(name)
        return ask((other) => other.checkQueue(name))
      },
      { queue: "q1", messageCount: 0, consumerCount: 1 }
    ),
    row(
      "an exclusive queue belongs to its connection",
      "https://www.rabbitmq.com/docs/queues#exclusive-queues",
      async ({ ask, connection, name }) => {
        const queue = name("own")
        const other = await connection()
        await (await other.channel()).assertQueue(queue, { exclusive: true })
        const told = String(await ask((channel) => channel.checkQueue(queue)))
        await other.close()
        const after = String(await ask((channel) => channel.checkQueue(queue)))
        return [told.slice(0, 88), after.includes("NOT_FOUND")]
      },
      ['Operation failed: QueueDeclare; 405 (RESOURCE-LOCKED) with message "RESOURCE_LOCKED - ca', true]
    ),
    row(
      "a quorum queue is not deleted only if it is empty",
      seen,
      async ({ connection, queue }) => {
        const name = await queue(quorum)
        const used = await (await connection()).channel()
        return used.deleteQueue(name, { ifEmpty: true }).catch(() => "the connection is closed")
      },
      "the connection is closed"
    ),
    row(
      "a single active consumer gets all messages",
      "https://www.rabbitmq.com/docs/consumers#single-active-consumer",
      async ({ channel, queue, send, take }) => {
        const name = await queue({ ...quorum, "x-single-active-consumer": true })
        await send(name, "a")
        const { seen: messages } = await take(name, 1)
        const other = await channel()
        let others = 0
        await other.consume(name, () => others++)
        await send(name, "b")
        return [messages.map(({ id }) => id), others]
      },
      [["a"], 0]
    ),
    row(
      "a consumer of a higher priority comes first",
      "https://www.rabbitmq.com/docs/consumer-priority",
      async ({ channel, queue, send }) => {
        const name = await queue(classic)
        const got: Array<string> = []
        let done: () => void = () => {}
        const both = new Promise<void>((resolve) => (done = resolve))
        for (const [text, priority] of [
          ["low", 1],
          ["high", 5]
        ] as const) {
          const used = await channel()
          await used.prefetch(1)
          await used.consume(name, () => got.push(text) === 2 && done(), { priority })
        }
        await send(name, "a")
        await send(name, "b")
        await both
        return got
      },
      ["high", "low"]
    ),
    row(
      "a queue with priorities delivers the highest first",
      "https://www.rabbitmq.com/docs/priority",
      async ({ ids, queue, send }) => {
        const name = await queue({ ...classic, "x-max-priority": 5 })
        for (const [id, priority] of [
          ["a", 1],
          ["b", 3],
          ["c", 9],
          ["d", 5]
        ] as const)
          await send(name, id, { priority })
        return ids(name, 4)
      },
      ["c", "d", "b", "a"]
    ),
    row(
      "purging removes and counts ready messages",
      seen,
      async ({ ask, queue, ready, send, take }) => {
        const name = await queue(quorum)
        for (const id of ["a", "b", "c"]) await send(name, id)
        await take(name, 1)
        await ready(name, 2)
        return ask((channel) => channel.purgeQueue(name))
      },
      { messageCount: 2 }
    )
  ]
}
