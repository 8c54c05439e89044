/** Browses queues of real nsqd: what is removed is gone, everything else is returned, and nothing is made. */
import { Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, describe, test } from "vitest"
import { channels } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, ids, now, on, outgoing, publishAll, queueName, until, type Run } from "../world.ts"

const two = await server({ nodes: 2 })
const other = { nsqd: [two.direct.nsqd![1]!] }
const short = await server({ flags: { "msg-timeout": "1s", "max-msg-timeout": "3s" } })
const [wire] = short.wires

const retry = RetryPolicy.make()

const browse = (queue: string, limit = 100_000) =>
  Effect.flatMap(Broker.Broker, ({ admin }) => admin.browse({ queue, retry, from: "ready", limit }))

type Page = Effect.Success<ReturnType<Broker.Browser["next"]>>

const idsOf = (page: Page) => page.map(({ delivery }) => delivery.metadata.id)

const removed = ({ remove }: Broker.Browser, page: Page) => remove(page.map(({ delivery }) => delivery))

/** Shows up to so many messages. */
const show = ({ next }: Broker.Browser, count: number) =>
  Effect.gen(function* () {
    const shown: Array<Page[number]> = []
    while (shown.length < count) {
      const page = yield* next(count - shown.length)
      if (page.length === 0) break
      shown.push(...page)
    }
    return shown
  })

const outcomes = (failures: ReadonlyArray<Broker.SettleFailure>) =>
  failures.map(({ error, fate }) => `${fate} ${error.reason}`)

/** The error with which a browser ends its opening. */
const failing = ({ next }: Broker.Browser): Effect.Effect<BrokerError.BrokerError> =>
  Effect.flip(Effect.forever(next(1)))

const depths = async (http: ReadonlyArray<string>, queue: string) => {
  const all = await channels(http, queue)
  return {
    ready: all.reduce((sum, { ready }) => sum + ready, 0),
    inFlight: all.reduce((sum, { inFlight }) => sum + inFlight, 0)
  }
}

const isBack = (http: ReadonlyArray<string>, queue: string, count: number) =>
  until(`${count} messages that wait`, async () => {
    const { inFlight, ready } = await depths(http, queue)
    return ready === count && inFlight === 0
  })

const places = async (http: ReadonlyArray<string>, queue: string) =>
  (await channels(http, queue)).map((each) => `${each.http} ${each.topic} ${each.name}`).toSorted()

test(
  "6,000 messages in both topics of two nsqd are shown once each; those that are removed are gone, the others are returned",
  { timeout: 120_000 },
  async () => {
    const queue = queueName("many")
    const names = ids(6000)
    const redriven = names.slice(0, 100).map((id) => {
      const message = outgoing(queue, id)
      return { ...message, metadata: { ...message.metadata, redrives: 1 } }
    })
    await on(two.direct, (broker) =>
      Effect.andThen(broker.publish(redriven), publishAll(broker, queue, names.slice(100, 3100)))
    )
    await on(other, (broker) => publishAll(broker, queue, names.slice(3100)))
    const before = await places(two.http, queue)
    const seen: Array<string> = []
    const kept: Array<string> = []
    await on(two.wired, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const browser = yield* browse(queue)
          for (let page = yield* browser.next(100); page.length > 0; page = yield* browser.next(100)) {
            assert.isAtMost(page.length, 100)
            seen.push(...idsOf(page))
            const chosen = page.filter(({ delivery }) => Number(delivery.metadata.id.replace(/\D/g, "")) % 4 !== 0)
            kept.push(...idsOf(page.filter((each) => !chosen.includes(each))))
            assert.deepStrictEqual(yield* removed(browser, chosen), [])
          }
          assert.deepStrictEqual(browser.browsed(), { isWhole: true, hidden: 0 })
        })
      )
    )
    assert.deepStrictEqual(seen.toSorted(), names.toSorted())
    // What was removed has made room: each channel took one connection.
    const subscriptions = two.wires.flatMap((each) =>
      each.sent("SUB").map(({ args }) => `${each.port} ${args.join("/")}`)
    )
    assert.strictEqual(new Set(subscriptions).size, subscriptions.length)
    await Effect.runPromise(isBack(two.http, queue, kept.length))
    assert.deepStrictEqual(await places(two.http, queue), before)
    await on(two.direct, () =>
      Effect.gen(function* () {
        const rest = yield* show(yield* browse(queue), names.length)
        assert.deepStrictEqual(idsOf(rest).toSorted(), kept.toSorted())
        assert.isTrue(rest.every(({ delivery: { attempts, redelivered } }) => attempts === 2 && redelivered === true))
      })
    )
  }
)

test("no more are held than the limit, and what is removed makes room for others", async () => {
  const queue = queueName("limit")
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(10))
      const browser = yield* browse(queue, 4)
      const shown = yield* show(browser, 10)
      assert.lengthOf(shown, 4)
      assert.isFalse(browser.browsed().isWhole)
      assert.deepStrictEqual(yield* Effect.promise(() => depths(two.http, queue)), { ready: 6, inFlight: 4 })
      assert.deepStrictEqual(yield* removed(browser, shown), [])
      // Nothing that was not asked for comes instead.
      assert.deepStrictEqual(yield* Effect.promise(() => depths(two.http, queue)), { ready: 6, inFlight: 0 })
      assert.lengthOf(yield* show(browser, 10), 4)
    })
  )
  await Effect.runPromise(isBack(two.http, queue, 6))
})

test("what comes after an empty page is shown by a later call", async () => {
  const queue = queueName("later")
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ["a"])
      const browser = yield* browse(queue)
      assert.deepStrictEqual(idsOf(yield* show(browser, 10)), ["a"])
      assert.isTrue(browser.browsed().isWhole)
      yield* publishAll(broker, queue, ["b"])
      yield* until("the message that waits", async () => (await depths(two.http, queue)).ready === 1)
      assert.deepStrictEqual(idsOf(yield* show(browser, 10)), ["b"])
    })
  )
})

test("a call that is interrupted, and the end of the scope, return everything to the next consumer", async () => {
  const queue = queueName("interrupted")
  const runs: Array<Run> = []
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(300))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const browser = yield* browse(queue)
          yield* show(browser, 50)
          const more = yield* Effect.forkChild(browser.next(100), { startImmediately: true })
          yield* Effect.yieldNow
          yield* Fiber.interrupt(more)
        })
      )
      yield* isBack(two.http, queue, 300)
      yield* consume(queue, runs, { concurrency: 10 })
      yield* until("all runs", () => runs.length === 300)
    })
  )
})

describe("nothing is made", () => {
  test("by browsing a queue that is missing", async () => {
    const queue = queueName("missing")
    await on(two.direct, () =>
      Effect.gen(function* () {
        const browser = yield* browse(queue)
        assert.lengthOf(yield* browser.next(10), 0)
        assert.isTrue(browser.browsed().isWhole)
      })
    )
    assert.deepStrictEqual(await places(two.http, queue), [])
  })

  test("by browsing a topic that has messages and no channel yet", async () => {
    const queue = queueName("channelless")
    const response = await fetch(`http://${two.http[0]}/pub?topic=${queue}`, { method: "POST", body: "a" })
    assert.isTrue(response.ok)
    await on(two.direct, () =>
      Effect.gen(function* () {
        const browser = yield* browse(queue)
        assert.lengthOf(yield* browser.next(10), 0)
        assert.isFalse(browser.browsed().isWhole)
      })
    )
    assert.deepStrictEqual(await places(two.http, queue), [])
  })
})

test.each([
  ["delayed messages", "delayed", true],
  ["without nsqd's HTTP interface, messages", "ready", false]
] as const)("%s cannot be browsed", async (_, from, http) => {
  await on({ ...two.direct, http }, ({ admin }) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(admin.browse({ queue: "any", retry, from, limit: 1 })))
      assert.strictEqual(error.reason, "Unsupported")
    })
  )
})

test("a purge beside a consumer removes what waits on every nsqd, and nothing else", async () => {
  const queue = queueName("beside")
  await on(two.direct, (broker) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const isOver = yield* Deferred.make<void>()
      yield* consume(queue, runs, { prefetch: 0 }, () => Deferred.await(isOver))
      yield* publishAll(broker, queue, ["busy"])
      yield* until("the run", () => runs.length === 1)
      yield* publishAll(broker, queue, ids(600, "first"))
      yield* Effect.promise(() => on(other, (second) => publishAll(second, queue, ids(600, "second"))))
      yield* until("all that wait", async () => (await depths(two.http, queue)).ready === 1200)
      assert.strictEqual(yield* broker.admin.purge(queue), 1200)
      assert.deepStrictEqual(yield* Effect.promise(() => depths(two.http, queue)), { ready: 0, inFlight: 1 })
      assert.lengthOf(runs, 1)
      yield* Deferred.succeed(isOver, undefined)
      yield* until("an empty queue", async () => (await depths(two.http, queue)).inFlight === 0)
    })
  )
})

describe("removals that nsqd does not carry out are reported", () => {
  test("as gone, when the channel was emptied: neither the fence nor the refusals close the connection", async () => {
    const queue = queueName("emptied")
    const before = wire.sent("SUB").length
    await on(short.wired, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(5))
        const browser = yield* browse(queue)
        const shown = yield* show(browser, 5)
        assert.deepStrictEqual(yield* removed(browser, shown.slice(0, 2)), [])
        const url = `http://${short.http[0]}/channel/empty?topic=${queue}&channel=requeue`
        assert.isTrue(yield* Effect.promise(async () => (await fetch(url, { method: "POST" })).ok))
        assert.deepStrictEqual(
          outcomes(yield* removed(browser, shown)),
          Array.from({ length: 5 }, () => "lost LeaseLost")
        )
        yield* publishAll(broker, queue, ["new"])
        yield* until("the message that waits", async () => (await depths(short.http, queue)).ready === 1)
        const next = yield* show(browser, 1)
        assert.deepStrictEqual(idsOf(next), ["new"])
        assert.deepStrictEqual(yield* removed(browser, next), [])
      })
    )
    assert.strictEqual(wire.sent("SUB").length, before + 1)
    await Effect.runPromise(isBack(short.http, queue, 0))
  })

  test("as unknown, when nsqd does not answer", async () => {
    const queue = queueName("silent")
    await on({ ...short.wired, requestTimeout: 500 }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ["a", "b"])
        const browser = yield* browse(queue)
        const shown = yield* show(browser, 2)
        wire.blackhole(true)
        const failures = yield* removed(browser, shown.slice(0, 1))
        wire.blackhole(false)
        assert.deepStrictEqual(outcomes(failures), ["unknown Timeout"])
        assert.strictEqual((yield* failing(browser)).reason, "ConnectionLost")
        assert.deepStrictEqual(outcomes(yield* removed(browser, shown)), ["lost ConnectionLost", "lost ConnectionLost"])
      })
    )
    await Effect.runPromise(
      until("the other message that waits", async () => {
        const { inFlight, ready } = await depths(short.http, queue)
        return ready === 1 && inFlight === 0
      })
    )
  })
})

test("a connection on which nothing passes any more is noticed, though nothing is removed", async () => {
  const queue = queueName("dead")
  await on({ ...short.wired, requestTimeout: 500 }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ["a", "b"])
      const browser = yield* browse(queue)
      yield* show(browser, 2)
      wire.blackhole(true)
      assert.strictEqual((yield* failing(browser)).reason, "ConnectionLost")
      wire.blackhole(false)
    })
  )
  await Effect.runPromise(isBack(short.http, queue, 2))
})

describe("a connection that is cut", () => {
  test("fails one call; the next one shows what was not removed, under the same names", async () => {
    const queue = queueName("cut")
    await on(short.wired, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(20))
        const browser = yield* browse(queue)
        const shown = yield* show(browser, 20)
        const names = shown.map(({ delivery }) => String(browser.identify(delivery)))
        assert.strictEqual(new Set(names).size, 20)
        assert.deepStrictEqual(yield* removed(browser, shown.slice(0, 5)), [])
        wire.cut()
        assert.strictEqual((yield* failing(browser)).reason, "ConnectionLost")
        yield* isBack(short.http, queue, 15)
        const again = yield* show(browser, 20)
        assert.deepStrictEqual(
          again.map(({ delivery }) => String(browser.identify(delivery))).toSorted(),
          names.slice(5).toSorted()
        )
        assert.deepStrictEqual(new Set(outcomes(yield* removed(browser, shown))), new Set(["lost ConnectionLost"]))
        assert.deepStrictEqual(yield* removed(browser, again), [])
      })
    )
    await Effect.runPromise(isBack(short.http, queue, 0))
  })

  test("gives its messages to another consumer, and a removal by the browser does not count", async () => {
    const queue = queueName("taken")
    const runs: Array<Run> = []
    await on(short.wired, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(5))
        const browser = yield* browse(queue)
        const shown = yield* show(browser, 5)
        wire.cut()
        yield* Effect.promise(() =>
          on(short.direct, () =>
            Effect.andThen(
              consume(queue, runs),
              until("all runs", () => runs.length === 5)
            )
          )
        )
        const fates = outcomes(yield* removed(browser, shown))
        assert.deepStrictEqual(
          fates,
          Array.from({ length: 5 }, () => "lost ConnectionLost")
        )
      })
    )
    assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), ids(5).toSorted())
  })
})

describe("the longest lease", () => {
  test("is not used up: before its end all are returned, and the call after the error shows them again", async () => {
    const queue = queueName("lapsing")
    const before = wire.sent("REQ").length
    await on(short.wired, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(5))
        const browser = yield* browse(queue)
        const shown = yield* show(browser, 5)
        yield* isBack(short.http, queue, 5)
        // Not by nsqd itself.
        assert.strictEqual(wire.sent("REQ").length, before + 5)
        const failures = yield* removed(browser, shown)
        assert.deepStrictEqual(
          failures.map(({ fate }) => fate),
          Array.from({ length: 5 }, () => "lost")
        )
        assert.strictEqual((yield* Effect.flip(browser.next(5))).reason, "LeaseLost")
        const again = yield* show(browser, 5)
        const names = (page: Page) => page.map(({ delivery }) => String(browser.identify(delivery))).toSorted()
        assert.deepStrictEqual(names(again), names(shown))
        assert.isTrue(again.every(({ delivery }) => delivery.attempts === 2))
        const runs: Array<Run> = []
        yield* consume(queue, runs)
        yield* until("all runs", () => runs.length >= 5)
        assert.deepStrictEqual(runs.map(({ id }) => id).toSorted(), ids(5).toSorted())
      })
    )
  })

  test("concerns only what is still held", async () => {
    const queue = queueName("lasting")
    await on(short.direct, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ["0"])
        const browser = yield* browse(queue)
        const begin = now()
        for (let count = 1; now() < begin + 5000; count++) {
          yield* publishAll(broker, queue, [String(count)])
          const page = yield* show(browser, 1)
          assert.deepStrictEqual(yield* removed(browser, page), [])
        }
      })
    )
  })
})
