/** Objects that are deleted under consumers, producers and a redrive: they are there again, or somebody is told. */
import { Backoff, type Broker, Consumer, type Event, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Channel } from "amqplib"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { get, permit, readerAndWriter } from "../real/adoptedBooks.ts"
import { counted } from "./counted.ts"
import { apart, server, type Server } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const one = await server()
const { managementUrl } = one.broker

/** Milliseconds of the only retry. */
const delay = 300

/** Messages that a consumer of these tests has at most, and letters that a redrive may have. */
const held = 30
const letters = Array.from({ length: 200 }, (_, index) => `r${index + 1}`)

/** Somebody deletes an object; answers how many messages go with it. */
type Delete = (channel: Channel, prefix: string, queue: string) => Promise<number>

const deleteQueue = async (channel: Channel, name: string) => (await channel.deleteQueue(name)).messageCount + held
const none = async (deletion: Promise<unknown>) => {
  await deletion
  return 0
}

const kinds: Readonly<Record<string, Delete>> = {
  "the queue": (channel, _, queue) => deleteQueue(channel, queue),
  "the dead-letter queue": (channel, _, queue) => deleteQueue(channel, `${queue}.dlq`),
  "a rung": (channel, prefix) => deleteQueue(channel, `${prefix}.v1.q.delay.${delay}`),
  "a rung's exchange": (channel, prefix) => none(channel.deleteExchange(`${prefix}.v1.q.delay.${delay}`)),
  "the binding that brings delayed messages back": (channel, prefix, queue) =>
    none(channel.unbindQueue(queue, `${prefix}.v1.deliver`, queue)),
  "the exchange that brings delayed messages back": (channel, prefix) =>
    none(channel.deleteExchange(`${prefix}.v1.deliver`)),
  "the exchange of the server's dead letters": (channel, prefix) => none(channel.deleteExchange(`${prefix}.v1.dead`)),
  "the queue of the undelivered": (channel, prefix) => deleteQueue(channel, `${prefix}.v1.q.undelivered`)
}

/** Whether no error tells of the deletion. */
const isSilent = (kind: string) => kind.startsWith("the binding") || kind.startsWith("the exchange")

/** What the process does while the object is deleted. */
type Activity = "an idle consumer" | "a busy consumer" | "a producer" | "a redrive"
const activities: ReadonlyArray<Activity> = ["an idle consumer", "a busy consumer", "a producer", "a redrive"]

interface Books {
  readonly confirmed: Set<string>
  readonly ended: Map<string, Event.Event["_tag"]>
  readonly consumers: Array<Consumer.Consumer>
}

const consume = (queue: string, { consumers, ended }: Books) =>
  Effect.tap(
    Consumer.start<string>(
      queue,
      {
        retry: RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) }),
        concurrency: 10,
        onEvent: (event) => {
          if (event._tag === "Succeeded" || event._tag === "DeadLettered") ended.set(event.id, event._tag)
        }
      },
      ({ attempts, id }) => {
        const number = Number(id.slice(1))
        if (number % 10 === 0 || (number % 5 === 0 && attempts === 1)) throw new Error("no")
      }
    ),
    (consumer) => Effect.sync(() => consumers.push(consumer))
  )

/** The consumers that the broker gives nothing. */
const down = ({ consumers }: Books) =>
  consumers.flatMap((consumer) => (consumer.health().state === "down" ? [consumer.health().trouble?.because] : []))

/** Publishes one message; whether it is stored is in the books. */
const publish = (broker: Broker.Service, queue: string, id: string, { confirmed }: Books) =>
  Effect.match(broker.publish([outgoing(queue, id, id.endsWith("7") ? { delay } : {})]), {
    onFailure: () => {},
    onSuccess: () => void confirmed.add(id)
  })

/** Does something until it is interrupted. */
const act = (activity: Activity, broker: Broker.Service, queue: string, books: Books) =>
  Effect.gen(function* () {
    if (activity !== "a producer") yield* consume(queue, books)
    if (activity === "an idle consumer") return yield* Effect.never
    if (activity === "a redrive") {
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      return yield* Effect.forever(
        Effect.andThen(Effect.ignore(letters.redrive({ to: queue, rate: 40 })), Effect.sleep(50))
      )
    }
    for (let number = 0; ; number++) {
      yield* Effect.forkScoped(publish(broker, queue, `m${number}`, books))
      yield* Effect.sleep(20)
    }
  })

/** All messages of the queues of a cell that another client can see. */
const look = async (prefix: string, queue: string) => {
  const queued: Array<string> = []
  for (const name of [queue, `${queue}.dlq`, `${prefix}.v1.q.undelivered`, `${prefix}.v1.q.delay.${delay}`])
    queued.push(...(await drainIds(one.url, name).catch(() => [])))
  return queued
}

/** Messages of a queue that its dead-lettering holds back, where nobody sees them: its target was gone for a moment. */
const hidden = async (name: string): Promise<number> => {
  // The server counts every 5 s.
  await new Promise((resume) => setTimeout(resume, 10_000))
  const { messages = 0 } = (await get(managementUrl!, `queues/%2F/${name}`)) as { readonly messages?: number } // As RabbitMQ documents it.
  return messages
}

interface Cell {
  readonly kind: string
  readonly remove: Delete
  readonly activity: Activity
  readonly mayDeclare: boolean
}

const messagesOf = (base: string) => Array.from({ length: 20 }, (_, index) => `${base}${index + 1}`)

const cell = async ({ activity, kind, mayDeclare, remove }: Cell): Promise<void> => {
  const name = `${kind}, ${activity}, may ${mayDeclare ? "" : "not "}declare`
  const [prefix, queue, user] = [queueName("p").slice(0, 20), queueName("heal"), queueName("user")]
  const books: Books = { confirmed: new Set(), ended: new Map(), consumers: [] }
  const login = await readerAndWriter(managementUrl!, user)
  const mayConfigure = (expression: string) => Effect.promise(() => permit(managementUrl!, user, expression))
  let taken = 0
  const program = (own: Server) => (broker: Broker.Service) =>
    Effect.gen(function* () {
      // Everything is there, before something is deleted.
      yield* Effect.scoped(consume(queue, books))
      if (activity === "a redrive") {
        yield* Effect.forEach(letters, (id) => publish(broker, `${queue}.dlq`, id, books), { concurrency: 20 })
      }
      yield* Effect.forkScoped(Effect.scoped(act(activity, broker, queue, books)))
      yield* Effect.sleep(500)
      if (!mayDeclare) yield* mayConfigure("^$")
      taken = yield* Effect.promise(() => raw(one.url, (channel) => remove(channel, prefix, queue)))
      const seen = yield* counted(own)
      yield* Effect.sleep("5 seconds")
      assert.isAtMost(seen.channels(), 150, `channels, ${name}`)
      assert.isAtMost(seen.declarations(), 300, `declarations, ${name}`)
      const isConsumed = kind === "the queue" && activity !== "a producer"
      const isDown = !mayDeclare && isConsumed
      // A redrive of the queue that is missing may have just begun, or ended.
      const isOpen = kind === "the dead-letter queue" && activity === "a redrive"
      // Before the next look for what nothing tells of, which is due within 35 s.
      yield* until(`its state, ${name}`, () => isOpen || down(books).length === (isDown ? 1 : 0), 20_000)
      if (isDown) assert.include(down(books)[0], queue)
      assert.strictEqual(broker.connection().state, "up", "no queue takes the others along")
      if (!mayDeclare) yield* mayConfigure(".*")
      if (activity === "a producer") yield* consume(queue, books)
      const isUp = () => down(books).length === 0
      yield* until(`the end of what was wrong, ${name}`, isUp)
      // What is delayed now must come back; where nothing tells of what was deleted, a look is due within 35 s.
      if (isSilent(kind)) yield* Effect.sleep("36 seconds")
      const after = messagesOf("n")
      yield* Effect.forEach(after, (id) => Effect.retry(broker.publish([outgoing(queue, id)]), Schedule.spaced(200)))
      yield* until(
        () => `the end of ${after.filter((id) => !books.ended.has(id)).join(" ")}, ${name}`,
        () => after.every((id) => books.ended.has(id))
      )
    })
  const run = Effect.flatMap(apart(one), (own) =>
    Effect.promise(() => on({ ...login, url: own.proxied, prefix }, program(own)))
  )
  await permit(managementUrl!, user, ".*")
  await Effect.runPromise(Effect.scoped(run))
  // A message that is on its way from one queue to another is in neither.
  const queued = new Set(await look(prefix, queue))
  await new Promise((resume) => setTimeout(resume, 4 * delay))
  for (const id of await look(prefix, queue)) queued.add(id)
  const lost = [...books.confirmed].filter((id) => !queued.has(id) && !books.ended.has(id))
  if (taken > 0 && activity === "a redrive") taken += letters.length
  const more = lost.length > taken ? await hidden(`${prefix}.v1.q.delay.${delay}`) : 0
  assert.isAtMost(lost.length, taken + more, `lost, ${name}: ${lost.join(" ")}`)
}

/** Deletes an object in each of its cells at the same time. */
const row = (kind: string, remove: Delete) =>
  Promise.all(
    activities.flatMap((activity) => [true, false].map((mayDeclare) => cell({ kind, remove, activity, mayDeclare })))
  )

const rows = Object.entries(kinds)

describe.skipIf(managementUrl === undefined)("a deleted object", () => {
  test.each(rows.filter(([kind]) => !isSilent(kind)))("%s", { timeout: 180_000 }, async (kind, remove) => {
    await row(kind, remove)
  })
})

// They wait for half a minute, side by side.
describe.skipIf(managementUrl === undefined).concurrent("a deleted object of which no error tells", () => {
  test.each(rows.filter(([kind]) => isSilent(kind)))("%s", { timeout: 180_000 }, async (kind, remove) => {
    await row(kind, remove)
  })
})

/** Whether a queue is there. */
const isThere = (name: string) =>
  raw(one.url, (channel) => channel.checkQueue(name)).then(
    () => true,
    () => false
  )

/** What delays of 1550 ms = 31 units need, and the policy of the test does not have. */
const onDemand: ReadonlyArray<readonly [kind: string, isOurs: boolean, name: string]> = [
  ["the last queue of delays to an adopted queue", false, "50.home.QUEUE"],
  ["a level in the middle", true, "50.2"]
]

describe.concurrent("what the first delay of a handler has made, and somebody deletes, is made again:", () => {
  test.each(onDemand)("%s", { timeout: 90_000 }, async (_, isOurs, name) => {
    const [prefix, queue] = [queueName("p").slice(0, 20), queueName("asked")]
    const level = `${prefix}.v1.q.level.${name.replace("QUEUE", queue)}`
    const again: Array<string> = []
    const asked = 1550
    if (!isOurs)
      await raw(one.url, (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
    const queues: RabbitMqOptions.Options["queues"] = isOurs ? {} : { [queue]: { assert: "passive" } }
    await on({ url: one.url, prefix, queues }, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start<string>(queue, {}, (message) => {
          if (message.attempts === 1) message.retry({ delay: asked })
          else again.push(message.id)
        })
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("the first delay", () => again.includes("a"))
        yield* Effect.promise(() => raw(one.url, (channel) => channel.deleteQueue(level)))
        yield* until("the queue again", () => isThere(level), 60_000)
        yield* broker.publish([outgoing(queue, "b")])
        yield* until("the second delay", () => again.includes("b"))
      })
    )
  })
})
