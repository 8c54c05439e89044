/** How the facts of a simulated RabbitMQ become copies. */
import { assert, test } from "vitest"
import * as Generate from "../../src/Generate.ts"
import * as Homes from "../../src/rabbitmq/Homes.ts"
import * as Witness from "../../src/rabbitmq/Witness.ts"
import type { Entry } from "../../src/servers/rabbitmq/Entry.ts"
import type { Message, Publication } from "../../src/servers/rabbitmq/Message.ts"
import { Vhost } from "../../src/servers/rabbitmq/Vhost.ts"
import * as Host from "../../src/world/Host.ts"
import * as World from "../../src/world/World.ts"

const publication: Publication = {
  exchange: "",
  routingKey: "work",
  properties: {},
  table: undefined,
  content: Buffer.from("")
}

const message: Message = {
  ...publication,
  routingKeys: ["work"],
  deaths: [],
  firstDeath: undefined,
  lastDeath: undefined
}

const entryOf = (id: number): Entry => ({
  id,
  message,
  place: 0,
  delivery: 0,
  expiresAt: Infinity,
  returns: 0,
  failures: 0,
  isRedelivered: false
})

const world = World.make({ ...Generate.scenario(1), processes: [], sendings: [] })
const host = Host.ofServer(world)
const vhost = new Vhost({ host, version: "4.0.5", name: "/", defaultQueueType: "quorum", onFact: () => {} })

test("a queue without a dead-letter exchange passes nothing on, though its messages expire", () => {
  const [home, kept] = ["work", "requeue.v1.q.undelivered"] as const
  for (const name of [home, kept]) vhost.declareQueue(name, { durable: true, arguments: {} }, {})
  vhost.setPolicy("operator", "short", { pattern: "^requeue", definition: { "message-ttl": 20_000 } })
  assert.deepStrictEqual(Homes.wayFrom(vhost, kept, message), { home: kept, delay: 0 })
})

test("a delayed message goes home though its queue is not bound yet", () => {
  const [deliver, aside] = ["requeue.v1.deliver", "requeue.v1.undelivered"] as const
  const [kept, delay] = ["requeue.v1.q.undelivered", "requeue.v1.q.delay.5000"] as const
  vhost.exchanges.declare(aside, "fanout", true, {})
  vhost.exchanges.declare(deliver, "direct", true, { "alternate-exchange": aside })
  vhost.bind({ source: aside, queue: kept, key: "", arguments: {} }, {})
  const onward = { "x-dead-letter-exchange": deliver, "x-message-ttl": 5000 }
  vhost.declareQueue(delay, { durable: true, arguments: onward }, {})
  assert.deepStrictEqual(Homes.wayFrom(vhost, delay, message), { home: "work", delay: 5000 })
})

test("a message that is replaced, returned and replaced again is made of the delivery that was replaced", () => {
  const replacing = { ...publication }
  const witness = Witness.make(
    world,
    host.now,
    () => vhost,
    (each) => (each === replacing ? { process: "a1", of: 11, replaces: true } : undefined)
  )
  const queue = "work"
  const store = (id: number, publication: Publication): Entry => {
    const entry = entryOf(id)
    witness({ _tag: "Stored", queue, entry, origin: { _tag: "Published", publication } })
    return entry
  }
  const deliver = (entry: Entry, delivery: number): void => {
    entry.delivery = delivery
    witness({ _tag: "HandedOut", queue, entry, client: "a1" })
  }

  const original = store(1, publication)
  deliver(original, 11)
  for (const [replacement, delivery] of [
    [2, 12],
    [3, 13]
  ] as const) {
    store(replacement, replacing)
    // The connection was cut before the ack of the original.
    deliver(original, delivery)
    witness({ _tag: "Back", queue, entry: original, how: "ended", due: 0 })
  }

  const copies = world.history.flatMap((entry) => (entry._tag === "Stored" ? [entry.of] : []))
  assert.deepStrictEqual(copies, [undefined, 11, 11])
})
