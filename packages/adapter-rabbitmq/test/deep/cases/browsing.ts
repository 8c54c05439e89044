/** Browsing waiting messages leaves them as they are. */
import { Check } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { hasFailureCount } from "../../../src/internal/version.ts"
import { permit, readerAndWriter } from "../../real/adoptedBooks.ts"
import { raw, takeAndLeave } from "../traps/trap.ts"
import { browse, drainIds, ids, outgoing, queueName, shown, until } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

const quorum = (limit: number) => ({
  durable: true,
  arguments: { "x-queue-type": "quorum", "x-delivery-limit": limit }
})

/** Puts messages into a queue that somebody else has made. */
const fill = (url: string, queue: string, limit: number, names: ReadonlyArray<string>) =>
  Effect.promise(() =>
    raw(url, async (channel) => {
      await channel.assertQueue(queue, quorum(limit))
      for (const messageId of names) channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId })
    })
  )

const countOf = (url: string, queue: string) =>
  raw(url, (channel) => channel.checkQueue(queue)).then(({ messageCount }) => messageCount)

/** The ids in a queue with the server's counts of their returns. */
const counted = (url: string, queue: string) =>
  raw(url, async (channel) => {
    const found: Array<readonly [string, unknown]> = []
    for (let message = await channel.get(queue); message !== false; message = await channel.get(queue))
      found.push([String(message.properties.messageId), message.properties.headers?.["x-delivery-count"] ?? 0])
    return found
  })

export const cases = [
  test("browsing 40 of 60 messages leaves them in their order, and uncounted where the server counts failures apart", (adapter, on) =>
    Effect.gen(function* () {
      const { url, version } = adapter.server
      const [queue, names] = [queueName("browsed"), ids(60)]
      yield* on({}, (broker) =>
        Effect.gen(function* () {
          yield* broker.publish(names.map((id) => outgoing(queue, id)))
          for (let round = 0; round < 3; round++) {
            const seen = yield* browse(broker, queue, 40)
            Check.equal(
              `round ${round}`,
              seen.map(({ metadata }) => metadata.id),
              names.slice(0, 40)
            )
          }
        })
      )
      const count = hasFailureCount(version) ? () => 0 : (at: number) => (at < 40 ? 3 : 0)
      Check.equal(
        "they are",
        yield* Effect.promise(() => counted(url, queue)),
        names.map((id, at) => [id, count(at)])
      )
    })),

  test("browsing some of what others have browsed leaves all in their order, where the server counts failures apart", (adapter, on) =>
    Effect.gen(function* () {
      const { url, version } = adapter.server
      const [queue, names] = [queueName("some"), ids(60)]
      yield* on({}, (broker) =>
        Effect.gen(function* () {
          yield* broker.publish(names.map((id) => outgoing(queue, id)))
          for (const count of [50, 3, 20, 3, 60, 3]) {
            const seen = (yield* browse(broker, queue, count)).map(({ metadata }) => metadata.id)
            if (hasFailureCount(version)) Check.equal(`browsing ${count}`, seen, names.slice(0, count))
          }
        })
      )
      const left = yield* Effect.promise(() => drainIds(url, queue))
      Check.equal("they are", hasFailureCount(version) ? left : [...left].toSorted(), names)
    })),

  test("messages are there after more returns than their queue allows, where they are browsed in between", (adapter, on) =>
    Effect.gen(function* () {
      const { url } = adapter.server
      const [queue, names] = [queueName("returned"), ids(3)]
      yield* fill(url, queue, 3, names)
      yield* on({ queues: { [queue]: { assert: "passive" } } }, (broker) =>
        Effect.gen(function* () {
          for (let round = 0; round < 6; round++) {
            yield* Effect.promise(() => takeAndLeave(url, queue, names.length))
            yield* until(`all are back, round ${round}`, async () => (await countOf(url, queue)) === names.length)
            Check.equal("seen", (yield* browse(broker, queue, 10)).length, names.length)
          }
        })
      )
      Check.equal("they are", [...(yield* Effect.promise(() => drainIds(url, queue)))].toSorted(), names)
    })),

  test("of 1,200 messages some are replaced, some are removed, and all others stay", (adapter, on) =>
    Effect.gen(function* () {
      const { url } = adapter.server
      const [queue, names] = [queueName("many"), ids(1200)]
      yield* fill(url, queue, 4, names)
      for (let left = 2; left > 0; left--) {
        yield* Effect.promise(() => takeAndLeave(url, queue, 3))
        yield* until("all are back", async () => (await countOf(url, queue)) === names.length)
      }
      yield* on({ queues: { [queue]: { assert: "passive", arguments: quorum(4).arguments } } }, (broker) =>
        Effect.gen(function* () {
          const removed = yield* Effect.scoped(
            Effect.gen(function* () {
              const browser = yield* broker.admin.browse({ queue, from: "ready", limit: 10_000 })
              const seen = yield* shown(browser)
              Check.equal("seen", seen.length, names.length)
              const last = seen.slice(-50).map(({ delivery }) => delivery)
              Check.equal("not removed", yield* browser.remove(last), [])
              return last.map(({ metadata }) => metadata.id)
            })
          )
          const rest = names.filter((id) => !removed.includes(id))
          yield* until("the others are back", async () => (await countOf(url, queue)) === rest.length)
          Check.equal("they are", [...(yield* Effect.promise(() => drainIds(url, queue)))].toSorted(), rest.toSorted())
        })
      )
    })),

  test("messages that a browser cannot replace stay what they are", (adapter, on) =>
    Effect.gen(function* () {
      const { broker: server, url } = adapter.server
      const [queue, user, names] = [queueName("kept"), queueName("reader"), ids(3)]
      yield* fill(url, queue, 100, names)
      const login = yield* Effect.promise(() => readerAndWriter(server.managementUrl!, user))
      // Whoever may not write cannot put a copy in a message's place.
      yield* Effect.promise(() => permit(server.managementUrl!, user, "^$", "^$"))
      yield* Effect.promise(() => takeAndLeave(url, queue, names.length))
      yield* until("all are back", async () => (await countOf(url, queue)) === names.length)
      yield* on({ ...login, assert: "never" }, (broker) =>
        Effect.gen(function* () {
          Check.equal("seen", (yield* browse(broker, queue, 10)).length, names.length)
        })
      )
      Check.equal("they are", [...(yield* Effect.promise(() => drainIds(url, queue)))].toSorted(), names)
    }))
]
