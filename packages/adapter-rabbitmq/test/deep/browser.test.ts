/** Browsers: what they hold, remove and return, on each kind of queue. */
import { Backoff, type Broker, type Delivery, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { hasFailureCount } from "../../src/internal/version.ts"
import { server } from "../real/server.ts"
import { drainIds, ids, on, outgoing, queueName, shown, until } from "../world.ts"
import { raw } from "./traps/trap.ts"

const one = await server()
const { proxied, proxy, url, version } = one

const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(3_600_000) })

const open = (broker: Broker.Service, queue: string, options: Partial<Broker.BrowseOptions> = {}) =>
  broker.admin.browse({ queue, retry, from: "ready", limit: 100_000, ...options })

const idsOf = (page: ReadonlyArray<Broker.BrowsedMessage>) => page.map(({ delivery }) => delivery.metadata.id)
const deliveries = (page: ReadonlyArray<Broker.BrowsedMessage>) => page.map(({ delivery }) => delivery)

const even = <A>(list: ReadonlyArray<A>) => list.filter((_, at) => at % 2 === 0)
const odd = <A>(list: ReadonlyArray<A>) => list.filter((_, at) => at % 2 === 1)

const countOf = (queue: string) =>
  raw(url, (channel) => channel.checkQueue(queue)).then(({ messageCount }) => messageCount)

const passive = (queue: string) => ({ url: proxied, queues: { [queue]: { assert: "passive" as const } } })

/** A queue of another program with messages. */
const fill = (queue: string, args: Readonly<Record<string, unknown>>, names: ReadonlyArray<string>) =>
  raw(url, async (channel) => {
    await channel.assertQueue(queue, { durable: true, arguments: args })
    for (const messageId of names) channel.sendToQueue(queue, Buffer.from('"x"'), { persistent: true, messageId })
  })

describe.each(["quorum", "classic"] as const)("in a %s queue", (queueType) => {
  test("every second of 60 letters is removed, and the others are there in their order, uncounted", async () => {
    const queue = queueName("removed")
    const names = ids(60)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const browser = yield* open(broker, queue)
            const seen = yield* shown(browser)
            assert.deepStrictEqual(idsOf(seen), names)
            assert.deepStrictEqual(browser.browsed(), { isWhole: true, hidden: undefined })
            assert.deepStrictEqual(yield* browser.remove(deliveries(even(seen))), [])
            const again = yield* browser.remove(deliveries(even(seen)))
            assert.deepStrictEqual(new Set(again.map(({ fate }) => fate)), new Set(["lost"]))
            assert.lengthOf(again, 30)
          })
        )
        assert.strictEqual(yield* Effect.promise(() => countOf(queue)), 30)
        const seen = yield* Effect.scoped(Effect.flatMap(open(broker, queue), shown))
        assert.deepStrictEqual(idsOf(seen), odd(names))
        if (hasFailureCount(version) && queueType === "quorum")
          assert.deepStrictEqual(new Set(deliveries(seen).map(({ attempts }) => attempts)), new Set([1]))
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), odd(names))
  })

  test("letters after those that were returned before keep their order, when some of these are removed", async () => {
    const queue = queueName("some")
    const names = ids(60)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        yield* Effect.scoped(Effect.flatMap(open(broker, queue), (browser) => shown(browser, 50)))
        const browse = Effect.gen(function* () {
          const browser = yield* open(broker, queue)
          const seen = yield* shown(browser, 20)
          assert.deepStrictEqual(yield* browser.remove(deliveries(even(seen))), [])
          return idsOf(even(seen))
        })
        const removed = yield* Effect.scoped(browse)
        assert.lengthOf(removed, 10)
        const left = yield* Effect.promise(() => drainIds(url, queue))
        const rest = names.filter((id) => !removed.includes(id))
        // Other servers put what is returned behind what was returned before.
        if (queueType === "classic" || hasFailureCount(version)) assert.deepStrictEqual(left, rest)
        else assert.deepStrictEqual([...left].toSorted(), rest.toSorted())
      })
    )
  })

  test("what was removed page by page is gone when its connection breaks right after", async () => {
    const queue = queueName("proved")
    const names = ids(600)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        const browser = yield* open(broker, queue)
        const removed: Array<string> = []
        while (removed.length < 200) {
          const page = yield* browser.next(256)
          // Apart from each other, so that each is an answer of its own.
          assert.deepStrictEqual(yield* browser.remove(deliveries(even(page))), [])
          removed.push(...idsOf(even(page)))
        }
        proxy.cut()
        const rest = names.filter((id) => !removed.includes(id))
        yield* until("the others are back", async () => (await countOf(queue)) === rest.length)
        assert.deepStrictEqual([...(yield* Effect.promise(() => drainIds(url, queue)))].toSorted(), rest.toSorted())
      })
    )
  })

  test("a lost connection fails one page, and the next one shows again what was not removed", async () => {
    const queue = queueName("lost")
    const names = ids(50)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        const browser = yield* open(broker, queue)
        const seen = yield* shown(browser)
        const [first, ...others] = deliveries(seen)
        const before = new Set(others.map(browser.identify))
        assert.strictEqual(before.size, 49)
        assert.isFalse(before.has(undefined))
        assert.deepStrictEqual(yield* browser.remove([first!]), [])
        proxy.cut()
        const error = yield* Effect.flip(browser.next(100))
        assert.strictEqual(error.reason, "ConnectionLost")
        const fates = (yield* browser.remove(others)).map(({ fate }) => fate)
        assert.deepStrictEqual(
          fates,
          Array.from({ length: 49 }, () => "lost" as const)
        )
        const again: Array<Delivery.Delivery> = []
        yield* until("all are back", async () => (await countOf(queue)) === 49)
        while (again.length < 49) again.push(...deliveries(yield* browser.next(100)))
        assert.deepStrictEqual(again.map(({ metadata }) => metadata.id).toSorted(), names.slice(1).toSorted())
        assert.deepStrictEqual(new Set(again.map(browser.identify)), before)
        assert.deepStrictEqual(yield* browser.remove(again), [])
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), [])
  })

  test("no more than the limit is held, and what is removed makes room", async () => {
    const queue = queueName("limit")
    const names = ids(30)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        const browser = yield* open(broker, queue, { limit: 10 })
        const seen = yield* shown(browser)
        assert.deepStrictEqual(idsOf(seen), names.slice(0, 10))
        assert.isFalse(browser.browsed().isWhole)
        assert.strictEqual(yield* Effect.promise(() => countOf(queue)), 20)
        assert.deepStrictEqual(yield* browser.remove(deliveries(seen.slice(0, 5))), [])
        assert.deepStrictEqual(idsOf(yield* shown(browser)), names.slice(10, 15))
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), names.slice(5))
  })

  test("a page whose caller is gone is shown by the next call", async () => {
    const queue = queueName("interrupted")
    const names = ids(300)
    await on({ url: proxied, queueType }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id)))
        const browser = yield* open(broker, queue)
        const seen = [...(yield* browser.next(100)), ...(yield* browser.next(100))]
        proxy.blackhole(true)
        const interrupted = yield* Effect.timeoutOption(browser.next(100), 20)
        proxy.blackhole(false)
        assert.strictEqual(interrupted._tag, "None")
        assert.deepStrictEqual(idsOf([...seen, ...(yield* shown(browser))]), names)
      })
    )
    assert.deepStrictEqual(await drainIds(url, queue), names)
  })
})

test("one of two messages with the same name is not taken for the other", async () => {
  const queue = queueName("twins")
  await on({ url: proxied }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a"), outgoing(queue, "b")])
      yield* Effect.promise(() =>
        raw(url, async (channel) => {
          const message = await channel.get(queue, { noAck: true })
          if (message === false) return assert.fail("no message")
          for (let copy = 0; copy < 2; copy++)
            channel.sendToQueue(queue, message.content, { ...message.properties, persistent: true })
        })
      )
      // The server has handed all of them out before.
      yield* Effect.scoped(Effect.flatMap(open(broker, queue), shown))
      const browser = yield* open(broker, queue)
      const [b, first, second] = deliveries(yield* shown(browser))
      assert.isDefined(browser.identify(b!))
      assert.deepStrictEqual(
        [first, second].map((each) => browser.identify(each!)),
        [undefined, undefined]
      )
    })
  )
})

test("a copy of a browsed message keeps the properties of its sender", async () => {
  const [queue, other] = [queueName("original"), queueName("copy")]
  await raw(url, async (channel) => {
    const args = { "x-queue-type": "quorum" }
    await channel.assertQueue(queue, { durable: true, arguments: args })
    const theirs = { persistent: true, type: "t", correlationId: "c", headers: { n: 1, t: true } }
    channel.sendToQueue(queue, Buffer.from('"x"'), theirs)
  })
  await on({ ...passive(queue) }, (broker) =>
    Effect.gen(function* () {
      const browser = yield* open(broker, queue)
      const [{ delivery }] = (yield* browser.next(1)) as [Broker.BrowsedMessage]
      const { body, headers, metadata } = delivery
      yield* broker.publish([{ queue: other, body, headers, metadata, delay: 0 }])
      assert.deepStrictEqual(yield* browser.remove([delivery]), [])
    })
  )
  await raw(url, async (channel) => {
    const message = await channel.get(other, { noAck: true })
    if (message === false) return assert.fail("no message")
    const { correlationId, headers, type } = message.properties
    assert.deepStrictEqual([correlationId, type, headers?.["n"], headers?.["t"]], ["c", "t", 1, true])
  })
  assert.deepStrictEqual(await drainIds(url, queue), [])
})

describe.each([
  ["that is the only active one", { "x-queue-type": "classic", "x-single-active-consumer": true }, false],
  ["that consumes it exclusively", { "x-queue-type": "classic" }, true]
] as const)("beside a consumer %s", (_, args, exclusive) => {
  test("messages are shown and removed", async () => {
    const queue = queueName("alone")
    const names = ids(60)
    await fill(queue, args, names)
    await raw(url, async (channel) => {
      await channel.prefetch(1)
      const got = new Promise<void>((resume) => void channel.consume(queue, () => resume(), { exclusive }))
      await got
      await on(passive(queue), (broker) =>
        Effect.gen(function* () {
          const browser = yield* open(broker, queue)
          const seen = yield* shown(browser)
          assert.deepStrictEqual(idsOf(seen), names.slice(1))
          assert.deepStrictEqual(yield* browser.remove(deliveries(even(seen))), [])
          proxy.cut()
        })
      )
    })
    await Effect.runPromise(until("the others are back", async () => (await countOf(queue)) === 30))
    assert.deepStrictEqual((await drainIds(url, queue)).toSorted(), [names[0]!, ...odd(names.slice(1))].toSorted())
  })
})

test("a quorum queue with an active consumer is refused, and is shown when the consumer is gone", async () => {
  const queue = queueName("active")
  const names = ids(20)
  await fill(queue, { "x-queue-type": "quorum", "x-single-active-consumer": true }, names)
  await on(passive(queue), (broker) =>
    Effect.gen(function* () {
      const browser = yield* open(broker, queue)
      const beside = raw(url, async (channel) => {
        await channel.prefetch(1)
        await new Promise<void>((resume) => void channel.consume(queue, () => resume()))
        return Effect.runPromise(Effect.flip(browser.next(10)))
      })
      assert.strictEqual((yield* Effect.promise(() => beside)).reason, "AccessRefused")
      yield* until("all are back", async () => (await countOf(queue)) === names.length)
      const seen = yield* shown(browser)
      assert.deepStrictEqual(idsOf(seen).toSorted(), names.toSorted())
      assert.deepStrictEqual(yield* browser.remove(deliveries(even(seen))), [])
    })
  )
  await Effect.runPromise(until("the others are back", async () => (await countOf(queue)) === 10))
})

describe("messages that the server is about to give up", () => {
  test("are there after more browsers than their queue allows returns, in which others were removed", async () => {
    const queue = queueName("near")
    const names = ids(12)
    await fill(queue, { "x-queue-type": "quorum", "x-delivery-limit": 3 }, names)
    await on(passive(queue), (broker) =>
      Effect.gen(function* () {
        for (let round = 0; round < 6; round++) {
          const browse = Effect.gen(function* () {
            const browser = yield* open(broker, queue)
            const page = deliveries(yield* shown(browser, 3))
            assert.deepStrictEqual(yield* browser.remove(page.slice(0, 1)), [])
          })
          yield* Effect.scoped(browse)
          yield* until(`${round}`, async () => (await countOf(queue)) === names.length - round - 1)
        }
      })
    )
    assert.lengthOf(await drainIds(url, queue), 6)
  })
})

test("a queue that is missing shows nothing, and is not made", async () => {
  const queue = queueName("nowhere")
  await on({ url: proxied }, (broker) =>
    Effect.gen(function* () {
      for (const name of [queue, "x".repeat(300)]) {
        const browser = yield* open(broker, name)
        assert.deepStrictEqual(yield* browser.next(10), [])
        assert.isTrue(browser.browsed().isWhole)
      }
    })
  )
  await raw(url, async (channel) => {
    const found = await channel.checkQueue(queue).then(
      () => "there",
      () => "missing"
    )
    assert.strictEqual(found, "missing")
  })
})

test.runIf(hasFailureCount(version))("messages that the server takes back after its consumer timeout", async () => {
  const queue = queueName("slow")
  const names = ids(3)
  await fill(queue, { "x-queue-type": "quorum", "x-consumer-timeout": 3000 }, names)
  await on(passive(queue), (broker) =>
    Effect.gen(function* () {
      const browser = yield* open(broker, queue)
      const seen = deliveries(yield* shown(browser))
      yield* until("they are back", async () => (await countOf(queue)) === names.length, 60_000)
      const fates = (yield* browser.remove(seen)).map(({ fate }) => fate)
      assert.deepStrictEqual(fates, ["lost", "lost", "lost"])
      assert.strictEqual((yield* Effect.flip(browser.next(10))).reason, "LeaseLost")
      assert.deepStrictEqual(idsOf(yield* shown(browser)).toSorted(), names.toSorted())
    })
  )
})

describe("of delayed messages", () => {
  const long = 3_600_000
  const level = (prefix: string) => `${prefix}.v1.q.level.50.16`

  test("every second one is removed, the others stay for their time, and each is shown once", async () => {
    const [queue, prefix] = [queueName("delayed"), queueName("d")]
    const names = ids(60)
    await on({ url: proxied, prefix }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id, { delay: long })))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const browser = yield* open(broker, queue, { from: "delayed" })
            const seen: Array<Broker.BrowsedMessage> = []
            for (let page = yield* browser.next(20); page.length > 0; page = yield* browser.next(20)) {
              assert.isAtMost(page.length, 20)
              assert.deepStrictEqual(yield* browser.remove(deliveries(even(page))), [])
              seen.push(...page)
            }
            assert.deepStrictEqual(idsOf(seen), names)
            assert.isTrue(seen.every(({ due = 0 }) => due > Date.now()))
            assert.isTrue(browser.browsed().isWhole)
          })
        )
        const left = yield* Effect.scoped(Effect.flatMap(open(broker, queue, { from: "delayed" }), shown))
        assert.deepStrictEqual(idsOf(left), odd(names))
        assert.deepStrictEqual(new Set(deliveries(left).map(({ attempts }) => attempts)), new Set([1]))
      })
    )
    assert.strictEqual(await countOf(level(prefix)), 30)
  })

  test("those of another queue at the same place use up no limit", async () => {
    const [queue, other, prefix] = [queueName("mine"), queueName("theirs"), queueName("s")]
    await on({ url: proxied, prefix }, (broker) =>
      Effect.gen(function* () {
        for (const each of [other, queue])
          yield* broker.publish(ids(20).map((id) => outgoing(each, id, { delay: long })))
        const browser = yield* open(broker, queue, { from: "delayed", limit: 5 })
        assert.deepStrictEqual(idsOf(yield* shown(browser)), ids(20))
        assert.isTrue(browser.browsed().isWhole)
      })
    )
    assert.strictEqual(await countOf(level(prefix)), 40)
  })

  test("what is not removed in time goes back by itself, and is gone for a removal", { timeout: 60_000 }, async () => {
    const [queue, prefix] = [queueName("late"), queueName("l")]
    const names = ids(30)
    await on({ url: proxied, prefix }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id, { delay: long })))
        const browser = yield* open(broker, queue, { from: "delayed" })
        const page = yield* browser.next(10)
        assert.deepStrictEqual(idsOf(page), names.slice(0, 10))
        yield* until("all are back", async () => (await countOf(level(prefix))) === names.length)
        const fates = (yield* browser.remove(deliveries(page))).map(({ fate }) => fate)
        assert.deepStrictEqual(
          fates,
          Array.from({ length: 10 }, () => "lost" as const)
        )
        assert.deepStrictEqual(idsOf(yield* shown(browser)), names.slice(10))
      })
    )
    assert.strictEqual(await countOf(level(prefix)), names.length)
  })

  test("a lost connection fails one page, and the next one shows them again", async () => {
    const [queue, prefix] = [queueName("cut"), queueName("c")]
    const names = ids(30)
    await on({ url: proxied, prefix }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(names.map((id) => outgoing(queue, id, { delay: long })))
        const browser = yield* open(broker, queue, { from: "delayed" })
        const page = deliveries(yield* browser.next(10))
        assert.deepStrictEqual(yield* browser.remove(page.slice(0, 5)), [])
        proxy.cut()
        const [failure] = yield* browser.remove(page.slice(5, 6))
        assert.include(["unknown", "lost"], failure?.fate)
        assert.strictEqual((yield* Effect.flip(browser.next(10))).reason, "ConnectionLost")
        yield* until("all are back", async () => (await countOf(level(prefix))) === names.length - 5)
        const again = yield* shown(browser)
        assert.deepStrictEqual(idsOf(again).toSorted(), names.slice(5).toSorted())
        const known = new Set(deliveries(again).map(browser.identify))
        assert.isTrue(page.slice(5).every((delivery) => known.has(browser.identify(delivery))))
      })
    )
  })
})
