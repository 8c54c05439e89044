/** Rules of exchanges, confirmations and returns. */
import { row, type Tools } from "./bench.ts"

const confirms = "https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed"
const seen = "seen on 3.10.8 and 4.3.6"
const closed = (code: string, text: string) => `Channel closed by server: ${code} with message "${text}"`

/** A queue that is bound to a new exchange by each of these keys. */
const bound = async ({ ask, exchange, queue }: Tools, type: string, keys: ReadonlyArray<string>, args = {}) => {
  const [source, name] = [await exchange(type), await queue()]
  for (const key of keys) await ask((channel) => channel.bindQueue(name, source, key, args))
  return { source, name }
}

/** Publishes by each key, and returns which of them were routed. */
const routed = async (tools: Tools, source: string, keys: ReadonlyArray<string>) => {
  const outcomes: Array<string> = []
  for (const key of keys) outcomes.push(await tools.publish(source, key, key, { mandatory: true }))
  return keys.filter((_, index) => outcomes[index] === "stored")
}

/** The rows of a server. */
export const rows = () => [
  row("an unroutable message is confirmed", confirms, ({ name, send }) => send(name("none"), "a"), "stored"),
  row(
    "an unroutable mandatory message is returned first",
    confirms,
    ({ name, send }) => send(name("none"), "a", { mandatory: true }),
    "returned"
  ),
  row(
    "returns of equal messages come once for each",
    "findings R21",
    async ({ confirms: open, name }) => {
      const channel = await open()
      const events: Array<string> = []
      channel.on("return", () => events.push("return"))
      const publish = () =>
        new Promise<void>((resolve) =>
          channel.publish("", name("none"), Buffer.from("x"), { mandatory: true, messageId: "same" }, () => {
            events.push("confirm")
            resolve()
          })
        )
      await Promise.all([publish(), publish()])
      return [events.filter((event) => event === "return").length, events.at(0), events.at(-1)]
    },
    [2, "return", "confirm"]
  ),
  row(
    "a return has no tag, and the message's properties",
    "findings R21",
    async ({ confirms: open, name }) => {
      const channel = await open()
      const returned = new Promise<unknown>((resolve) =>
        channel.on("return", ({ fields, properties }) =>
          resolve([
            fields.replyCode,
            fields.replyText,
            fields.routingKey,
            properties.messageId,
            "deliveryTag" in fields
          ])
        )
      )
      channel.publish("", name("none"), Buffer.from("x"), { mandatory: true, messageId: "m" })
      return returned
    },
    [312, "NO_ROUTE", "none", "m", false]
  ),
  row(
    "a full queue with reject-publish nacks",
    "https://www.rabbitmq.com/docs/maxlength#overflow-behaviour",
    async ({ queue, ready, send }) => {
      const name = await queue({ "x-queue-type": "classic", "x-max-length": 1, "x-overflow": "reject-publish" })
      await send(name, "a")
      await ready(name, 1)
      return send(name, "b")
    },
    "message nacked"
  ),
  row(
    "a full queue drops its head and confirms",
    "https://www.rabbitmq.com/docs/maxlength",
    async ({ ids, queue, ready, send }) => {
      const name = await queue({ "x-queue-type": "quorum", "x-max-length": 2 })
      const outcomes = [await send(name, "a"), await send(name, "b"), await send(name, "c")]
      await ready(name, 2)
      return [outcomes, await ids(name, 2)]
    },
    [
      ["stored", "stored", "stored"],
      ["b", "c"]
    ]
  ),
  row(
    "a missing exchange closes the channel",
    seen,
    ({ publish }) => publish("none", "k", "a"),
    closed("404 (NOT-FOUND)", "NOT_FOUND - no exchange 'none' in vhost '/'")
  ),
  row(
    "confirmations that are missing when the channel is closed fail",
    seen,
    async ({ confirms: open, queue }) => {
      const name = await queue()
      const channel = await open()
      const outcomes = ["none", ""].map(
        (exchange) =>
          new Promise<string>((resolve) =>
            channel.publish(exchange, name, Buffer.from("x"), {}, (error) => resolve(String(error)))
          )
      )
      return Promise.all(outcomes)
    },
    ["Error: channel closed", "Error: channel closed"]
  ),
  row(
    "an expiration is a whole number",
    seen,
    async ({ queue, send }) => {
      const text = await send(await queue(), "a", { expiration: "1500.5" })
      return /^Channel closed by server: 406 .*invalid expiration '1500.5'/.test(text)
    },
    true
  ),
  row(
    "a message names no other user",
    "https://www.rabbitmq.com/docs/validated-user-id",
    async ({ queue, send }) => {
      const text = await send(await queue(), "a", { userId: "other" })
      return /406 .*user_id property set to 'other' but authenticated user was/.test(text)
    },
    true
  ),
  row(
    "a direct exchange routes by equal keys",
    "https://www.rabbitmq.com/docs/exchanges",
    async (tools) => {
      const { source } = await bound(tools, "direct", ["a", "b"])
      return routed(tools, source, ["a", "b", "c", ""])
    },
    ["a", "b"]
  ),
  row(
    "a fanout exchange routes all",
    "https://www.rabbitmq.com/docs/exchanges",
    async (tools) => {
      const { source } = await bound(tools, "fanout", ["x"])
      return routed(tools, source, ["a", ""])
    },
    ["a", ""]
  ),
  row(
    "a topic exchange routes by words",
    "https://www.rabbitmq.com/tutorials/tutorial-five-javascript",
    async (tools) => {
      const { source } = await bound(tools, "topic", ["*.orange.#", "lazy.*"])
      return routed(tools, source, ["a.orange", "a.orange.b.c", "orange", "lazy.x", "lazy.x.y", "lazy", ""])
    },
    ["a.orange", "a.orange.b.c", "lazy.x"]
  ),
  row(
    "# alone routes every key",
    "https://www.rabbitmq.com/tutorials/tutorial-five-javascript",
    async (tools) => {
      const { source } = await bound(tools, "topic", ["#"])
      return routed(tools, source, ["a.b", ""])
    },
    ["a.b", ""]
  ),
  row(
    "a headers exchange needs all headers by default",
    "https://www.rabbitmq.com/docs/exchanges#headers",
    async (tools) => {
      const { source } = await bound(tools, "headers", [""], { a: "1", b: "2" })
      const by = (headers: object) => tools.publish(source, "", "m", { mandatory: true, headers })
      return [await by({ a: "1", b: "2", c: "3" }), await by({ a: "1" }), await by({})]
    },
    ["stored", "returned", "returned"]
  ),
  row(
    "a headers exchange may need any of them",
    "https://www.rabbitmq.com/docs/exchanges#headers",
    async (tools) => {
      const { source } = await bound(tools, "headers", [""], { "x-match": "any", a: "1", b: "2" })
      const by = (headers: object) => tools.publish(source, "", "m", { mandatory: true, headers })
      return [await by({ a: "1" }), await by({ a: "2" })]
    },
    ["stored", "returned"]
  ),
  row(
    "an alternate exchange gets what has no route",
    "https://www.rabbitmq.com/docs/ae",
    async (tools) => {
      const { name, source } = await bound(tools, "fanout", [""])
      const first = await tools.exchange("direct", { "alternate-exchange": source })
      const outcome = await tools.publish(first, "k", "a", { mandatory: true })
      const { seen: messages } = await tools.take(name, 1)
      return [outcome, messages.map(({ message }) => message.fields.exchange === first)]
    },
    ["stored", [true]]
  ),
  row(
    "a queue that is bound twice gets a message once",
    "https://www.rabbitmq.com/docs/exchanges",
    async (tools) => {
      const { name, source } = await bound(tools, "topic", ["a.*", "*.b"])
      await tools.publish(source, "a.b", "m")
      await tools.publish(source, "a.b", "n")
      return tools.ids(name, 2)
    },
    ["m", "n"]
  ),
  row(
    "CC adds routing keys",
    "https://www.rabbitmq.com/docs/sender-selected",
    async ({ ids, queue, send }) => {
      const [one, other] = [await queue(), await queue()]
      await send(one, "a", { headers: { CC: [other] } })
      return [await ids(one, 1), await ids(other, 1)]
    },
    [["a"], ["a"]]
  ),
  row(
    "BCC adds routing keys and is removed",
    "https://www.rabbitmq.com/docs/sender-selected",
    async ({ queue, send, take }) => {
      const [one, other] = [await queue(), await queue()]
      await send(one, "a", { headers: { BCC: [other], kept: "k" } })
      const { seen: messages } = await take(other, 1)
      return messages.map(({ headers }) => headers)
    },
    [{ kept: "k" }]
  ),
  row(
    "a message keeps its properties and the types of its headers",
    seen,
    async ({ queue, send, take }) => {
      const name = await queue()
      const headers = {
        text: "t",
        byte: 5,
        int: 70_000,
        long: 2 ** 40,
        double: 0.5,
        yes: true,
        none: null,
        list: [1, "a"],
        table: { a: 1 }
      }
      await send(name, "a", {
        headers,
        contentType: "text/plain",
        correlationId: "c",
        replyTo: "r",
        timestamp: 5,
        type: "t",
        appId: "p",
        priority: 3
      })
      const { seen: messages } = await take(name, 1)
      const { appId, contentType, correlationId, deliveryMode, priority, replyTo, timestamp, type } =
        messages[0]!.message.properties
      return [messages[0]!.headers, appId, contentType, correlationId, deliveryMode, priority, replyTo, timestamp, type]
    },
    [
      {
        text: "t",
        byte: 5,
        int: 70_000,
        long: 2 ** 40,
        double: 0.5,
        yes: true,
        none: null,
        list: [1, "a"],
        table: { a: 1 }
      },
      "p",
      "text/plain",
      "c",
      2,
      3,
      "r",
      5,
      "t"
    ]
  )
]
