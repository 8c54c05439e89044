/** What a browser holds and receives, by what is answered for each of its calls. */
import { BrokerError, Metadata } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { Results } from "../src/internal/batchCall.ts"
import type { Message } from "../src/internal/client.ts"
import type { Receive } from "../src/internal/consume/receive.ts"
import * as Hold from "../src/internal/inspect/hold.ts"
import * as Pages from "../src/internal/inspect/pages.ts"

const error = (reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "settle", queue: "q", reason, detail: reason })

const reasons = (results: Results) => results.map((result) => result?.reason)

/** A hold by a clock of its own, and calls that are answered by hand. */
const held = (fifo = false) => {
  const world = {
    now: 0,
    extending: () => Promise.resolve<ReadonlyArray<BrokerError.Reason | undefined>>([]),
    deleting: () => Promise.resolve<ReadonlyArray<BrokerError.Reason | undefined>>([]),
    asked: [] as Array<string>
  }
  const answer = (count: number, answers: () => Promise<ReadonlyArray<BrokerError.Reason | undefined>>) =>
    Effect.promise(async () => {
      const told = await answers()
      return Array.from({ length: count }, (_, at) => (told[at] === undefined ? undefined : error(told[at])))
    })
  const hold = Hold.make({
    queue: "q",
    fifo,
    visibilityTimeout: 60_000,
    now: () => world.now,
    calls: {
      changeVisibility: (items) => {
        world.asked.push(...items.map(({ handle, seconds }) => `${handle} ${seconds}`))
        return answer(items.length, world.extending)
      },
      deleteMessages: (handles) => {
        world.asked.push(...handles.map((handle) => `${handle} deleted`))
        return answer(handles.length, world.deleting)
      },
      idle: Effect.void
    }
  })
  return { world, hold, run: Effect.runPromise }
}

describe("a message that is held", () => {
  test("is not lost where it is extended while it is deleted", async () => {
    const { hold, run, world } = held()
    hold.add("a", "1", 0)
    const { promise, resolve } = Promise.withResolvers<ReadonlyArray<undefined>>()
    world.deleting = () => promise
    world.extending = async () => ["LeaseLost"]
    const removing = run(hold.remove(["a"]))
    world.now = 20_000
    await run(hold.extend)
    assert.isUndefined(hold.lost())
    resolve([])
    assert.deepStrictEqual(reasons(await removing), [undefined])
    assert.strictEqual(hold.size(), 0)
  })

  test("whose delete got no answer, and that can be extended no more, was deleted", async () => {
    const { hold, run, world } = held()
    hold.add("a", "1", 0)
    world.deleting = async () => ["Timeout"]
    assert.deepStrictEqual(reasons(await run(hold.remove(["a"]))), ["Timeout"])
    world.extending = async () => ["LeaseLost"]
    world.now = 20_000
    await run(hold.extend)
    assert.deepStrictEqual([hold.lost(), hold.size()], [undefined, 0])
    assert.deepStrictEqual(reasons(await run(hold.remove(["a"]))), ["LeaseLost"])
  })

  test("is lost where SQS extends it no more, and the others are returned", async () => {
    const { hold, run, world } = held()
    hold.add("a", "1", 0)
    hold.add("b", "2", 30_000)
    world.deleting = async () => ["AccessRefused"]
    assert.deepStrictEqual(reasons(await run(hold.remove(["a"]))), ["AccessRefused"])
    world.extending = async () => ["LeaseLost", "LeaseLost"]
    world.now = 50_000
    await run(hold.extend)
    assert.strictEqual(hold.lost()?.reason, "LeaseLost")
    world.now = 70_000
    world.asked.length = 0
    await run(hold.release)
    // The other handle has expired: whoever has the message by then keeps it.
    assert.deepStrictEqual(world.asked, ["2 0"])
    assert.deepStrictEqual([hold.lost(), hold.size()], [undefined, 0])
  })

  test.each<[name: string, fifo: boolean, result: BrokerError.Reason | undefined]>([
    ["a standard queue, which reports success in any case", false, "LeaseLost"],
    ["a FIFO queue, which would refuse it", true, undefined]
  ])("and whose delete is answered after its lease has ended: of %s", async (_, fifo, result) => {
    const { hold, run, world } = held(fifo)
    hold.add("a", "1", 0)
    world.deleting = async () => {
      world.now = 61_000
      return []
    }
    assert.deepStrictEqual(reasons(await run(hold.remove(["a"]))), [result])
    assert.strictEqual(hold.size(), 0)
  })

  test("is extended to its twelve hours, and no further", async () => {
    const { hold, run, world } = held()
    hold.add("a", "1", 0)
    for (let at = 0; at < 43_200_000; at += 20_000) {
      assert.isUndefined(hold.lost())
      world.now = at
      await run(hold.extend)
    }
    assert.isTrue(world.asked.every((call) => Number(call.split(" ")[1]) > 0))
    world.now = 43_200_000
    assert.strictEqual(hold.lost()?.reason, "LeaseLost")
  })

  test("has its newest handle where SQS delivers it once more", async () => {
    const { hold, run, world } = held()
    assert.isTrue(hold.add("a", "1", 0))
    assert.isFalse(hold.add("a", "2", 10))
    await run(hold.remove(["a", "other"]))
    assert.deepStrictEqual(world.asked, ["2 deleted"])
  })
})

/** Pages whose receives are answered by a function, which gets the number of messages that is asked for. */
const paged = (
  answer: (count: number) => ReadonlyArray<Message> | BrokerError.Reason,
  { limit = 1000, probed = () => [] as ReturnType<typeof answer> } = {}
) => {
  const asked: Array<number> = []
  const receive =
    (by: typeof answer): Receive<Message> =>
    (count, { failed, received }) => {
      const told = by(count)
      queueMicrotask(() => (typeof told === "string" ? failed(error(told)) : received(told)))
    }
  const { hold, world } = held()
  const pages = Pages.make({
    fifo: false,
    limit,
    visibilityTimeout: 60_000,
    receive: (count, on) => {
      asked.push(count)
      receive(answer)(count, on)
    },
    probe: receive(probed),
    hold,
    countReady: Effect.undefined,
    toDelivery: (message, name) => ({
      body: Buffer.from(message.Body ?? ""),
      headers: {},
      attempts: 1,
      metadata: Metadata.make(name, 0),
      receipt: undefined
    }),
    fork: (effect) => void Effect.runFork(effect),
    now: () => world.now
  })
  return { asked, hold, pages, world, next: (count: number) => Effect.runPromise(pages.next(count)) }
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
  test("begin with one receive, go on with as many as are wanted, and end with one", async () => {
    const { asked, next, pages } = paged(queueOf(135))
    const sizes: Array<number> = []
    for (let page = await next(100); page.length > 0; page = await next(100)) sizes.push(page.length)
    assert.deepStrictEqual(sizes, [10, 100, 25])
    asked.length = 0
    assert.deepStrictEqual([await next(25), asked], [[], [10]])
    assert.deepStrictEqual(pages.browsed(), { isWhole: true, hidden: 0 })
  })

  test("are smaller where messages are large", async () => {
    const { asked, next } = paged(queueOf(100, "x".repeat(2 ** 18)))
    await next(100)
    asked.length = 0
    await next(100)
    assert.deepStrictEqual(asked, [10, 10])
  })

  test("ask for no more than may be held, and are not whole then", async () => {
    const { asked, next, pages } = paged(queueOf(100), { limit: 25 })
    assert.deepStrictEqual([(await next(100)).length, (await next(100)).length, (await next(100)).length], [10, 15, 0])
    assert.deepStrictEqual(asked, [10, 10, 5])
    assert.isFalse(pages.browsed().isWhole)
  })

  test("show what came beside a receive that failed, and are whole when what that took would have come again", async () => {
    const queue = queueOf(20)
    const failing = [false, false, true, true]
    const { hold, next, pages, world } = paged((count) => (failing.shift() === true ? "Timeout" : queue(count)))
    assert.deepStrictEqual([(await next(100)).length, (await next(20)).length], [10, 10])
    assert.strictEqual((await Effect.runPromise(Effect.flip(pages.next(1)))).reason, "Timeout")
    assert.deepStrictEqual([await next(1), pages.browsed().isWhole], [[], false])
    world.now = 30_000
    await Effect.runPromise(hold.extend)
    world.now = 61_000
    assert.deepStrictEqual([await next(1), pages.browsed().isWhole], [[], true])
  })

  test("are not whole where SQS delivers no more in flight", async () => {
    const { next, pages } = paged(() => [], { probed: () => "QueueFull" })
    assert.deepStrictEqual([await next(10), pages.browsed()], [[], { isWhole: false, hidden: 0 }])
  })
})
