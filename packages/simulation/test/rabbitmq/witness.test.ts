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

const queue = "work"

/** A witness, and what it sees: some publications replace a delivery. */
const watch = (replaced: number) => {
  const replacing = { ...publication }
  const witness = Witness.make(
    world,
    host.now,
    () => vhost,
    (each) => (each === replacing ? { process: "a1", of: replaced, replaces: true } : undefined)
  )
  const before = world.history.length
  const store = (id: number, publication: Publication): Entry => {
    const entry = entryOf(id)
    witness({ _tag: "Stored", queue, entry, origin: { _tag: "Published", publication } })
    return entry
  }
  return {
    told: () => world.history.slice(before),
    store: (id: number) => store(id, publication),
    replace: (id: number) => store(id, replacing),
    deliver: (entry: Entry, delivery: number): void => {
      entry.delivery = delivery
      witness({ _tag: "HandedOut", queue, entry, client: "a1" })
    },
    lose: (entry: Entry): void => witness({ _tag: "Back", queue, entry, how: "ended", due: 0 })
  }
}

test("a message that is replaced, returned and replaced again is made of the delivery that was replaced", () => {
  const { deliver, lose, replace, store, told } = watch(11)
  const original = store(1)
  deliver(original, 11)
  for (const [replacement, delivery] of [
    [2, 12],
    [3, 13]
  ] as const) {
    replace(replacement)
    // The connection was cut before the ack of the original.
    deliver(original, delivery)
    lose(original)
  }
  const copies = told().flatMap((entry) => (entry._tag === "Stored" ? [entry.of] : []))
  assert.deepStrictEqual(copies, [undefined, 11, 11])
})

test("a message that is replaced once more, late, after its return, keeps its deliveries", () => {
  const { deliver, lose, replace, store, told } = watch(41)
  const original = store(10)
  deliver(original, 41)
  replace(11)
  lose(original)
  replace(12)
  deliver(original, 42)
  const handed = told().flatMap((entry) => (entry._tag === "HandedOut" ? [entry.delivery] : []))
  assert.deepStrictEqual(handed, [41, 42])
})

test("a message on its way that is replaced late, after its return, is two copies of one source", () => {
  const [home, waiting] = ["work", "waiting"] as const
  const onward = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": home }
  for (const [name, table] of [
    [home, {}],
    [waiting, onward]
  ] as const)
    vhost.declareQueue(name, { durable: true, arguments: table }, {})
  const [retry, replacing] = [{ ...publication }, { ...publication }]
  const witness = Witness.make(
    world,
    host.now,
    () => vhost,
    (each) => ({ process: "a1", of: each === replacing ? 22 : 21, replaces: each === replacing })
  )
  const [original, replacement] = [entryOf(5), entryOf(6)]
  const before = world.history.length
  witness({ _tag: "Stored", queue: waiting, entry: original, origin: { _tag: "Published", publication: retry } })
  original.delivery = 22
  witness({ _tag: "HandedOut", queue: waiting, entry: original, client: "a1" })
  witness({ _tag: "Back", queue: waiting, entry: original, how: "ended", due: 0 })
  witness({ _tag: "Stored", queue: waiting, entry: replacement, origin: { _tag: "Published", publication: replacing } })
  for (const [index, entry] of [original, replacement].entries())
    witness({ _tag: "Stored", queue: home, entry: entryOf(7 + index), origin: { _tag: "GivenUp", entry } })

  const copies = world.history
    .slice(before)
    .flatMap((entry) => (entry._tag === "Stored" ? [[entry.queue, entry.of, entry.native]] : []))
  assert.deepStrictEqual(copies, [
    [home, 21, false],
    [home, 21, false]
  ])
})
