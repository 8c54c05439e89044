/** What a browser holds and receives, by what is answered for each of its calls. */
import { BrokerError, type Broker, type Delivery } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { assert, describe, test } from "vitest"
import type { Client, Message } from "../src/internal/client.ts"
import { browse } from "../src/internal/inspect/browse.ts"
import * as Hold from "../src/internal/inspect/hold.ts"
import { decode } from "../src/SqsOptions.ts"

type Reason = BrokerError.Reason | undefined

const error = (reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "settle", queue: "q", reason, detail: reason })

const told = (failures: ReadonlyArray<Broker.SettleFailure>) =>
  failures.map(({ error: { reason }, fate }) => `${fate} ${reason}`)

/** The delivery of a message, as far as a hold knows it. */
const delivered = (messageId: string) => ({ receipt: { messageId } }) as Delivery.Delivery

/** A hold by a clock of its own, and calls that are answered by hand. */
const held = () => {
  const world = {
    now: 0,
    extending: (): Promise<ReadonlyArray<Reason>> => Promise.resolve([]),
    deleting: (): Promise<ReadonlyArray<Reason>> => Promise.resolve([]),
    asked: [] as Array<string>
  }
  const answer = (count: number, answers: () => Promise<ReadonlyArray<Reason>>) =>
    Effect.promise(async () => {
      const reasons = await answers()
      return Array.from({ length: count }, (_, at) => (reasons[at] === undefined ? undefined : error(reasons[at])))
    })
  const calls = {
    changeVisibility: (items: ReadonlyArray<{ readonly handle: string; readonly seconds: number }>) => {
      world.asked.push(...items.map(({ handle, seconds }) => `${handle} ${seconds}`))
      return answer(items.length, world.extending)
    },
    deleteMessages: (handles: ReadonlyArray<string>) => {
      world.asked.push(...handles.map((handle) => `${handle} deleted`))
      return answer(handles.length, world.deleting)
    },
    idle: Effect.void
  }
  const hold = Hold.make("q", calls, 60_000, () => world.now)
  const receive = (messageId: string, handle: string, receivedAt = world.now) =>
    hold.add({ messageId, handle, receivedAt, leaseEnds: receivedAt + 60_000, leaseError: undefined })
  const remove = (...ids: ReadonlyArray<string>) => Effect.runPromise(Effect.map(hold.remove(ids.map(delivered)), told))
  return { ...hold, hold, receive, remove, world, run: Effect.runPromise }
}

describe("a message that is held", () => {
  test("is neither extended nor returned while it is deleted, and is held again where SQS refuses that", async () => {
    const { extend, loss, receive, release, remove, run, size, world } = held()
    receive("a", "1")
    const { promise, resolve } = Promise.withResolvers<ReadonlyArray<Reason>>()
    world.deleting = () => promise
    const removing = remove("a")
    world.now = 20_000
    await run(extend)
    assert.deepStrictEqual(world.asked, ["1 deleted"])
    resolve(["AccessRefused"])
    assert.deepStrictEqual(await removing, ["rejected AccessRefused"])
    assert.deepStrictEqual([loss(), size()], [undefined, 1])
    await run(release)
    assert.deepStrictEqual([world.asked, size()], [["1 deleted", "1 0"], 0])
  })

  test("is not lost where its delete arrives before its extension", async () => {
    const { extend, loss, receive, remove, run, size, world } = held()
    receive("a", "1")
    world.now = 20_000
    const { promise, resolve } = Promise.withResolvers<ReadonlyArray<Reason>>()
    world.extending = () => promise
    const extending = run(extend)
    assert.deepStrictEqual(await remove("a"), [])
    resolve(["LeaseLost"])
    await extending
    assert.deepStrictEqual([loss(), size()], [undefined, 0])
  })

  test("is not lost where its extension gets no answer", async () => {
    const { extend, loss, receive, run, world } = held()
    receive("a", "1")
    world.extending = async () => ["Timeout"]
    world.now = 20_000
    await run(extend)
    assert.isUndefined(loss())
  })

  test("is lost where SQS extends it no more, and the others are returned", async () => {
    const { extend, loss, receive, release, remove, run, size, world } = held()
    receive("a", "1")
    receive("b", "2", 30_000)
    world.extending = async () => ["LeaseLost"]
    world.now = 50_000
    await run(extend)
    assert.strictEqual(loss()?.reason, "LeaseLost")
    world.asked.length = 0
    assert.deepStrictEqual(await remove("a"), ["lost LeaseLost"])
    assert.strictEqual(loss()?.reason, "LeaseLost")
    await run(release)
    // Another process may have the other one.
    assert.deepStrictEqual(world.asked, ["2 0"])
    assert.deepStrictEqual([loss(), size()], [undefined, 0])
  })

  test("is gone where its delete is answered after its lease has ended: SQS reports success in any case", async () => {
    const { receive, remove, size, world } = held()
    receive("a", "1")
    world.deleting = async () => {
      world.now = 61_000
      return []
    }
    assert.deepStrictEqual([await remove("a"), size()], [["lost LeaseLost"], 0])
  })

  test("is deleted though the removal is interrupted", async () => {
    const { hold, receive, run, size, world } = held()
    receive("a", "1")
    const { promise, resolve } = Promise.withResolvers<ReadonlyArray<Reason>>()
    world.deleting = () => promise
    const fiber = Effect.runFork(hold.remove([delivered("a")]))
    await run(Effect.yieldNow)
    await run(Fiber.interrupt(fiber))
    assert.deepStrictEqual([world.asked, size()], [["1 deleted"], 0])
    resolve(["Timeout"])
    await promise
    await run(Effect.yieldNow)
    assert.strictEqual(size(), 1)
  })

  test("is held beside so many others that SQS takes half of a lease to extend them", async () => {
    const { hold, loss, receive, run, world } = held()
    for (let at = 0; at < 1600; at++) receive(`m${at}`, String(at))
    let answered = 0
    world.extending = async () => {
      world.now += (30_000 / 1600) * (world.asked.length - answered)
      answered = world.asked.length
      return []
    }
    for (const at of [20_000, 70_000, 120_000]) {
      world.now = at
      await run(hold.extend)
      assert.deepStrictEqual([world.now, loss()], [at + 30_000, undefined])
    }
  })

  test("is not extended once it is deleted, though its turn was still to come", async () => {
    const { hold, receive, remove, run, world } = held()
    for (let at = 0; at < 400; at++) receive(`m${at}`, String(at))
    const { promise, resolve } = Promise.withResolvers<ReadonlyArray<Reason>>()
    world.extending = () => promise
    const extending = run(hold.extend)
    assert.deepStrictEqual(await remove("m399"), [])
    resolve([])
    await extending
    assert.notInclude(world.asked, "399 60")
  })

  test("is extended to its twelve hours, and no further", async () => {
    const { extend, loss, receive, run, world } = held()
    receive("a", "1")
    for (let at = 0; at < 43_200_000; at += 20_000) {
      assert.isUndefined(loss())
      world.now = at
      await run(extend)
    }
    assert.isTrue(world.asked.every((call) => Number(call.split(" ")[1]) > 0))
    world.now = 43_200_000
    assert.strictEqual(loss()?.reason, "LeaseLost")
  })

  test("has its newest handle where SQS delivers it once more", async () => {
    const { receive, remove, world } = held()
    assert.isTrue(receive("a", "1"))
    assert.isFalse(receive("a", "2"))
    assert.deepStrictEqual(await remove("a", "other"), ["lost LeaseLost"])
    assert.deepStrictEqual(world.asked, ["2 deleted"])
  })
})

interface Visibility {
  readonly Entries: ReadonlyArray<{
    readonly Id: string
    readonly ReceiptHandle: string
    readonly VisibilityTimeout: number
  }>
}

/** A browser whose receives are answered by a function, which gets the number of messages that is asked for. */
const browsing = <A>(
  answer: (count: number) => ReadonlyArray<Message> | Error | Promise<ReadonlyArray<Message>>,
  program: (world: {
    readonly asked: Array<number>
    /** Handles of the messages that were returned. */
    readonly returned: Array<string>
    readonly counts: { ready: number; isMissing?: boolean }
    readonly browser: Broker.Browser
    readonly next: (count: number) => Promise<number>
  }) => Promise<A>,
  limit = 1000
) => {
  const asked: Array<number> = []
  const counts = { ready: 0, inFlight: 0, delayed: 0 }
  const returned: Array<string> = []
  const client = {
    polls:
      () =>
      async ({ MaxNumberOfMessages: count = 0 }) => {
        asked.push(count)
        const answered = await answer(count)
        if (answered instanceof Error) throw answered
        return { $metadata: {}, Messages: answered }
      },
    changeMessageVisibilityBatch: async ({ Entries }: Visibility) => {
      returned.push(
        ...Entries.flatMap(({ ReceiptHandle, VisibilityTimeout }) => (VisibilityTimeout === 0 ? [ReceiptHandle] : []))
      )
      return { Successful: Entries }
    }
  } as unknown as Client
  const env = {
    client,
    settings: Result.getOrThrow(decode({ url: "sqs://eu-west-1" })),
    queues: { see: () => Effect.succeed({ url: "u", fifo: false }) } as never,
    sources: { knows: () => true, learn: () => Effect.void, before: () => ({ count: 0, isShared: true }) },
    fork: (effect: Effect.Effect<unknown>) => void Effect.runFork(effect),
    now: () => 0
  }
  return Effect.gen(function* () {
    const browser = yield* browse(
      env,
      { queue: "q", from: "ready", limit },
      Effect.sync(() => counts)
    )
    const next = (count: number) => Effect.runPromise(Effect.map(browser.next(count), ({ length }) => length))
    return yield* Effect.promise(() => program({ asked, returned, counts, browser, next }))
  }).pipe(Effect.scoped, Effect.runPromise)
}

/** A queue of so many messages. */
const queueOf = (size: number, body = "x") => {
  let at = 0
  return (count: number): ReadonlyArray<Message> =>
    Array.from({ length: Math.min(count, size - at) }, () => {
      const name = `m${at++}`
      return { MessageId: name, ReceiptHandle: name, Body: body }
    })
}

describe("pages", () => {
  test("begin with one receive, go on with as many as are wanted, and end with one", () =>
    browsing(queueOf(135), async ({ asked, browser, counts, next }) => {
      counts.ready = 135
      const sizes: Array<number> = []
      for (let size = await next(100); size > 0; size = await next(100)) sizes.push(size)
      assert.deepStrictEqual(sizes, [10, 100, 25])
      asked.length = 0
      assert.deepStrictEqual([await next(25), asked], [0, [10]])
      assert.deepStrictEqual(browser.browsed(), { isWhole: true, hidden: 0 })
    }))

  test("are smaller where messages are large", () =>
    browsing(queueOf(100, "x".repeat(2 ** 18)), async ({ asked, next }) => {
      await next(100)
      await next(100)
      assert.deepStrictEqual(asked, [10, 10])
    }))

  test("ask for no more than may be held, and are not whole then", () =>
    browsing(
      queueOf(100),
      async ({ asked, browser, counts, next }) => {
        counts.ready = 100
        assert.deepStrictEqual([await next(100), await next(100), await next(100)], [10, 15, 0])
        assert.deepStrictEqual(asked, [10, 10, 5])
        assert.isFalse(browser.browsed().isWhole)
      },
      25
    ))

  test("show what came beside a receive that failed, and are whole when what that took has come", () => {
    const queue = queueOf(30)
    const failing = [false, false, true, true]
    const answer = (count: number) => (failing.shift() === true ? new Error("no answer") : queue(count))
    return browsing(answer, async ({ browser, counts, next }) => {
      counts.ready = 30
      assert.deepStrictEqual([await next(100), await next(20)], [10, 10])
      await Effect.runPromise(Effect.flip(browser.next(1)))
      assert.deepStrictEqual([await next(20), browser.browsed().isWhole], [10, false])
      assert.deepStrictEqual([await next(1), browser.browsed().isWhole], [0, true])
    })
  })

  test("are empty while the queue is missing", () =>
    browsing(queueOf(1), async ({ counts, next }) => {
      counts.isMissing = true
      assert.strictEqual(await next(10), 0)
      counts.isMissing = false
      assert.strictEqual(await next(10), 1)
    }))

  test("are not whole where messages that were counted have not come", () =>
    browsing(
      () => [],
      async ({ browser, counts, next }) => {
        counts.ready = 5
        assert.deepStrictEqual([await next(10), browser.browsed()], [0, { isWhole: false, hidden: 0 }])
      }
    ))

  test("return at their end what a receive brings whose call was interrupted", async () => {
    const [first, second] = [
      Promise.withResolvers<ReadonlyArray<Message>>(),
      Promise.withResolvers<ReadonlyArray<Message>>()
    ]
    const answers = [first, second]
    const asking = async (browser: Broker.Browser) => {
      const fiber = Effect.runFork(browser.next(1))
      await new Promise(setImmediate)
      await Effect.runPromise(Fiber.interrupt(fiber))
    }
    const message = (name: string) => [{ MessageId: name, ReceiptHandle: name, Body: "x" }]
    const returned = await browsing(
      () => answers.shift()!.promise,
      async ({ asked, browser, next, returned }) => {
        await asking(browser)
        first.resolve(message("a"))
        assert.strictEqual(await next(1), 1)
        await asking(browser)
        assert.deepStrictEqual([asked, returned], [[1, 1], []])
        setImmediate(() => second.resolve(message("b")))
        return returned
      }
    )
    assert.deepStrictEqual(returned, ["a", "b"])
  })
})
