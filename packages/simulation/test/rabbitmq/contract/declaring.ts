/** Rules of declarations. */
import { row, type Tools } from "./bench.ts"

const equivalence = "https://www.rabbitmq.com/docs/queues#property-equivalence"
const seen = "seen on 3.10.8 and 4.3.6"
const quorum = { "x-queue-type": "quorum" }
const classic = { "x-queue-type": "classic" }

const refused = (text: string, method = "QueueDeclare") =>
  `Operation failed: ${method}; 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - ${text}"`
const missing = (text: string, method: string) =>
  `Operation failed: ${method}; 404 (NOT-FOUND) with message "NOT_FOUND - no ${text} in vhost '/'"`
const denied = (text: string, method: string) =>
  `Operation failed: ${method}; 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - ${text}"`

/** Declares a queue twice; returns the answer to the second declaration. */
const twice =
  (first: Readonly<Record<string, unknown>>, second: Readonly<Record<string, unknown>>, flags = {}) =>
  async ({ ask, queue }: Tools) => {
    const name = await queue(first)
    return ask((channel) => channel.assertQueue(name, { ...flags, arguments: second }))
  }

/** Declares a queue that does not exist yet. */
const once =
  (args: Readonly<Record<string, unknown>>, flags = {}) =>
  ({ ask, name }: Tools) =>
    ask((channel) => channel.assertQueue(name("q"), { ...flags, arguments: args }))

const inequivalent = (name: string, received: string, current: string) =>
  refused(`inequivalent arg '${name}' for queue 'q1' in vhost '/': received ${received} but current is ${current}`)

const empty = { queue: "q1", messageCount: 0, consumerCount: 0 }

/** The rows of every server. */
export const rows = () => {
  const typeDiffers = (received: string, current: string) =>
    inequivalent("x-queue-type", `'${received}'`, `'${current}'`)
  return [
    row(
      "the same declaration changes nothing",
      equivalence,
      twice({ ...quorum, "x-message-ttl": 500 }, { ...quorum, "x-message-ttl": 500 }),
      empty
    ),
    row(
      "an added argument is refused with its type",
      equivalence,
      twice(quorum, { ...quorum, "x-message-ttl": 500 }),
      inequivalent("x-message-ttl", "the value '500' of type 'short'", "none")
    ),
    row(
      "a missing argument is refused",
      equivalence,
      twice({ ...quorum, "x-max-length": 5 }, quorum),
      inequivalent("x-max-length", "none", "the value '5' of type 'byte'")
    ),
    row(
      "another value is refused",
      equivalence,
      twice({ ...classic, "x-message-ttl": 60_000 }, { ...classic, "x-message-ttl": 70_000 }),
      inequivalent("x-message-ttl", "'70000'", "'60000'")
    ),
    row("an unknown argument is not compared", seen, twice(quorum, { ...quorum, "x-unknown": 1 }), empty),
    row(
      "an argument of the other type is not compared",
      seen,
      twice(quorum, { ...quorum, "x-max-priority": 3 }),
      empty
    ),
    row(
      "of several differences the first in the server's order is named",
      seen,
      twice(quorum, { ...quorum, "x-message-ttl": 1, "x-dead-letter-exchange": "a" }),
      inequivalent("x-dead-letter-exchange", "the value 'a' of type 'longstr'", "none")
    ),
    row(
      "a delivery limit is compared on quorum queues",
      seen,
      twice(quorum, { ...quorum, "x-delivery-limit": 7 }),
      inequivalent("x-delivery-limit", "the value '7' of type 'byte'", "none")
    ),
    row("a quorum queue is not redeclared as classic", seen, twice(quorum, classic), typeDiffers("classic", "quorum")),
    row("a classic queue is not redeclared as quorum", seen, twice(classic, quorum), typeDiffers("quorum", "classic")),
    row(
      "an unknown type of an existing queue is compared",
      "inspect/question.ts relies on it",
      twice(classic, { "x-queue-type": "requeue-asks" }),
      inequivalent("x-queue-type", "'requeue-asks'", "'classic'")
    ),
    row(
      "an unknown type is compared after other arguments",
      "inspect/question.ts relies on it",
      twice({ ...quorum, "x-overflow": "reject-publish" }, { "x-queue-type": "requeue-asks" }),
      inequivalent("x-overflow", "none", "the value 'reject-publish' of type 'longstr'")
    ),
    row(
      "another durability is refused",
      equivalence,
      twice(classic, classic, { durable: false }),
      inequivalent("durable", "'false'", "'true'")
    ),
    row(
      "another auto-delete is refused",
      equivalence,
      twice(quorum, quorum, { autoDelete: true }),
      inequivalent("auto_delete", "'true'", "'false'")
    ),
    row(
      "a negative TTL is refused",
      "check_expiry in rabbit_misc.erl",
      once({ ...classic, "x-message-ttl": -1 }),
      refused("invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}")
    ),
    row(
      "a TTL over ten years is refused",
      "check_expiry in rabbit_misc.erl",
      async (tools) =>
        /invalid arg 'x-message-ttl'.*value_too_(big|large)/.test(
          String(await once({ ...classic, "x-message-ttl": 315_360_000_001 })(tools))
        ),
      true
    ),
    row(
      "a fractional TTL is refused",
      seen,
      async (tools) =>
        /invalid arg 'x-message-ttl'/.test(String(await once({ ...classic, "x-message-ttl": 1.5 })(tools))),
      true
    ),
    row(
      "a queue cannot expire at once",
      seen,
      async (tools) =>
        /invalid arg 'x-expires'.*value_zero/.test(String(await once({ ...classic, "x-expires": 0 })(tools))),
      true
    ),
    row(
      "an unknown type of a new queue is refused",
      seen,
      async (tools) => /x-queue-type/.test(String(await once({ "x-queue-type": "nope" })(tools))),
      true
    ),
    row(
      "a quorum queue is not exclusive",
      seen,
      once(quorum, { exclusive: true }),
      refused("invalid property 'exclusive-owner' for queue 'q' in vhost '/'")
    ),
    row(
      "a quorum queue is durable",
      seen,
      once(quorum, { durable: false }),
      refused("invalid property 'non-durable' for queue 'q' in vhost '/'")
    ),
    row(
      "a classic queue has no strategy for dead letters",
      seen,
      once({ ...classic, "x-dead-letter-strategy": "at-least-once" }),
      refused("invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/' of queue type rabbit_classic_queue")
    ),
    row(
      "names that begin with amq. are reserved",
      seen,
      ({ ask }) => ask((channel) => channel.assertQueue("amq.requeue")),
      denied("queue name 'amq.requeue' contains reserved prefix 'amq.*'", "QueueDeclare")
    ),
    row(
      "a line break at the end of a name is removed",
      "strip_cr_lf in rabbit_channel.erl, findings R26",
      async ({ ask, name }) => ask((channel) => channel.assertQueue(`${name("q")}\r\n`)),
      { ...empty, queue: "q" }
    ),
    row(
      "a name with a line break is not consumed",
      "findings R26",
      async ({ ask, queue }) => {
        const name = await queue()
        return ask((channel) => channel.consume(`${name}\n`, () => {}))
      },
      missing("queue 'q1\n'", "BasicConsume")
    ),
    row(
      "a passive declare of a missing queue closes its channel",
      "https://www.rabbitmq.com/docs/channels#error-handling",
      ({ ask, name }) => ask((channel) => channel.checkQueue(name("none"))),
      missing("queue 'none'", "QueueDeclare")
    ),
    row(
      "a passive declare of a missing exchange closes its channel",
      seen,
      ({ ask, name }) => ask((channel) => channel.checkExchange(name("none"))),
      missing("exchange 'none'", "ExchangeDeclare")
    ),
    row(
      "a binding needs its exchange",
      seen,
      async ({ ask, queue }) => {
        const name = await queue()
        return ask((channel) => channel.bindQueue(name, "none", "k"))
      },
      missing("exchange 'none'", "QueueBind")
    ),
    row(
      "a binding needs its queue",
      seen,
      ({ ask }) => ask((channel) => channel.bindQueue("none", "amq.direct", "k")),
      missing("queue 'none'", "QueueBind")
    ),
    row(
      "the default exchange cannot be bound",
      seen,
      async ({ ask, queue }) => {
        const name = await queue()
        return ask((channel) => channel.bindQueue(name, "", "k"))
      },
      denied("operation not permitted on the default exchange", "QueueBind")
    ),
    row(
      "removing a missing binding, queue or exchange succeeds",
      seen,
      async ({ ask, queue }) => {
        const name = await queue()
        return [
          await ask((channel) => channel.unbindQueue(name, "amq.direct", "k")),
          await ask((channel) => channel.deleteQueue("none")),
          await ask((channel) => channel.deleteExchange("none"))
        ]
      },
      [{}, { messageCount: 0 }, {}]
    ),
    row(
      "a missing queue cannot be purged",
      seen,
      ({ ask }) => ask((channel) => channel.purgeQueue("none")),
      missing("queue 'none'", "QueuePurge")
    ),
    row(
      "another type of an exchange is refused",
      equivalence,
      ({ ask }) => ask((channel) => channel.assertExchange("amq.direct", "fanout")),
      refused(
        "inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': received 'fanout' but current is 'direct'",
        "ExchangeDeclare"
      )
    ),
    row(
      "another alternate exchange is refused",
      equivalence,
      async ({ ask, exchange }) => {
        const name = await exchange("direct")
        return ask((channel) => channel.assertExchange(name, "direct", { arguments: { "alternate-exchange": "a" } }))
      },
      refused(
        "inequivalent arg 'alternate-exchange' for exchange 'x1' in vhost '/': received the value 'a' of type 'longstr' but current is none",
        "ExchangeDeclare"
      )
    ),
    row(
      "a refusal leaves other channels open",
      "https://www.rabbitmq.com/docs/channels#error-handling",
      async ({ ask, channel, queue }) => {
        const name = await queue()
        const other = await channel()
        await ask((used) => used.checkQueue("none"))
        return other.checkQueue(name)
      },
      empty
    ),
    row(
      "requests behind a refused one fail without its text",
      "amqplib lib/channel.js",
      async ({ channel, queue }) => {
        const name = await queue()
        const used = await channel()
        const both = await Promise.allSettled([used.checkQueue("none"), used.checkQueue(name)])
        return both.map((one) => (one.status === "rejected" ? String(one.reason.message).slice(0, 40) : "ok"))
      },
      ["Operation failed: QueueDeclare; 404 (NOT", "Channel ended, no reply will be forthcom"]
    )
  ]
}
