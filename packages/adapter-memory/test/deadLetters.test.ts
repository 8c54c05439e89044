/** Reading dead letters, and redriving them. */
import { deadLetters, deadLettersOf } from "@requeue/operations/promise"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, expect, it } from "@effect/vitest"
import { type Broker, type RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import { PermanentError, queue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Port } from "@requeue/conformance"
import { bytes } from "./harness.ts"
import { open, text, turns, type VirtualBroker } from "./virtualBroker.ts"

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** The bytes that are in use. */
const heap = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** Sends messages to a consumer that gives each of them up at once, with its body for the reason. */
const bury = async (broker: VirtualBroker, queue: string, ...bodies: ReadonlyArray<string>): Promise<void> => {
  const worker = await broker.requeue.consume<string>(queue, {}, ({ body }) => {
    throw new PermanentError({ message: body })
  })
  await broker.requeue.sendBatch(
    queue,
    bodies.map((body) => ({ body, id: body, headers: { tenant: "t" } }))
  )
  await broker.finish(worker.drain())
  const { ready } = await broker.requeue.counts(queue)
  if (ready! > 0) throw new Error(`${ready} messages of ${queue} were not dead-lettered`)
}

const counted = ({ browsed, other, total }: DeadLetters.Groups) => [browsed, total, other]

const all = { redriven: 0, filtered: 0, overRedriveLimit: 0, unknownOrigin: 0 }
const ids = (letters: ReadonlyArray<DeadLetters.DeadLetter>) => letters.map(({ id }) => id)

describe("dead letters", () => {
  it("count, list and group", async () => {
    await using broker = await open()
    const letters = deadLetters(broker.requeue, "q.dlq")
    for (const call of [letters.count, letters.list, letters.group, letters.redrive])
      await expect(call()).rejects.toMatchObject({ reason: "QueueMissing" })
    await (await broker.requeue.consume("q", {}, () => {})).drain(0)
    assert.deepStrictEqual([await letters.count(), await letters.list(), await letters.group()], [0, [], []])
    await bury(broker, "q", "a", "b")
    await broker.advance("1 minute")
    await bury(broker, "q", "c")
    await Effect.runPromise(broker.control.publishRaw("q.dlq", bytes("who am I?")))
    assert.strictEqual(await letters.count(), 4)
    assert.deepStrictEqual(ids(await letters.list({ limit: 2 })), ["a", "b"])
    const [{ metadata, ...first } = assert.fail("no letter")] = await letters.list()
    assert.deepStrictEqual([metadata.id, metadata.deadLetter], [first.id, first.origin])
    assert.deepStrictEqual(
      { ...first, body: text(first) },
      {
        id: "a",
        body: `"a"`,
        headers: { "content-type": "application/json", tenant: "t" },
        native: {},
        firstPublished: 0,
        redrives: 0,
        history: [],
        origin: {
          queue: "q",
          attempts: 1,
          reason: "permanent",
          at: 0,
          error: { name: "PermanentError", message: "a", stack: first.origin?.error.stack }
        }
      }
    )
    assert.match(first.origin?.error.stack ?? "", /^ {4}at .*deadLetters\.test\.ts/)
    const mine = (id: string, at: number) => ({
      queue: "q",
      reason: "permanent" as const,
      error: "PermanentError",
      pattern: id,
      message: id,
      id,
      count: 1,
      missed: 0,
      oldest: at,
      newest: at
    })
    const groups = await letters.group()
    const foreign = {
      queue: undefined,
      reason: undefined,
      error: undefined,
      pattern: undefined,
      message: undefined,
      id: groups[1]!.id,
      count: 1,
      missed: 0,
      oldest: 60_000,
      newest: 60_000
    }
    assert.deepStrictEqual([...groups], [mine("c", 60_000), foreign, mine("a", 0), mine("b", 0)])
    assert.deepStrictEqual(counted(groups), [4, 4, 0])
    const some = await letters.group({ limit: 2 })
    assert.deepStrictEqual([...some], [mine("a", 0), mine("b", 0)])
    assert.deepStrictEqual(counted(some), [2, 4, 0])
    const filter = ({ origin }: DeadLetters.DeadLetter) => origin?.error.message === "b"
    const meant = await letters.group({ filter })
    assert.deepStrictEqual([...meant], [mine("b", 0)])
    assert.deepStrictEqual(counted(meant), [4, 4, 0])
  })

  it("that fail for one cause are one group, whatever differs in their messages", async () => {
    await using broker = await open()
    const refused = [5432, 6379].map((port) => `connect ECONNREFUSED 10.0.0.1:${port}`)
    await bury(
      broker,
      "q",
      ...refused,
      "order 1: HTTP 503",
      "order 2: HTTP 404",
      "order 3: HTTP 503",
      "order 4: HTTP 503"
    )
    const groups = await deadLetters(broker.requeue, "q.dlq").group()
    assert.deepStrictEqual(
      groups.map(({ count, pattern }) => [count, pattern]),
      [
        [3, "order <num>: HTTP 503"],
        [2, "connect ECONNREFUSED <addr>"],
        [1, "order <num>: HTTP 404"]
      ]
    )
  })

  it("are grouped in a bounded memory, though each of 20,000 has a cause of its own", async () => {
    let publish!: Broker.Service["publish"]
    await using broker = await open({}, (port) => {
      publish = port.publish
      return port
    })
    const cause = (n: number) => `${n}`.replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)]!)
    const at = { attempts: 1, notBefore: 0, firstPublished: 0, redrives: 0, history: [] }
    const letters = deadLetters(broker.requeue, "q.dlq")
    for (let from = 0; from < 20_000; from += 1000) {
      const messages = Array.from({ length: 1000 }, (_, n) => {
        const error = { name: "Error", message: `${cause(from + n)} ${"is no cause ".repeat(20)}` }
        const deadLetter = { queue: "q", attempts: 1, reason: "permanent" as const, at: 0, error }
        const metadata = { ...at, id: `${from + n}`, deadLetter }
        return { queue: "q.dlq", body: new Uint8Array(100), headers: {}, delay: 0, metadata }
      })
      await Effect.runPromise(publish(messages))
    }
    const before = heap()
    let grown = 0
    let browsed = 0
    const filter = () => {
      if (++browsed === 19_900) grown = heap() - before
      return true
    }
    const groups = await broker.finish(letters.group({ limit: 20_000, filter }))
    assert.strictEqual(groups.length, 1000)
    assert.deepStrictEqual(counted(groups), [20_000, 20_000, 19_000])
    assert.isBelow(grown, 20 * 2 ** 20)
    assert.strictEqual(await letters.count(), 20_000)
  })

  it("purge removes all and answers how many", async () => {
    await using broker = await open()
    await bury(broker, "q", "a", "b")
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").purge({ all: true }), 2)
    assert.strictEqual(await deadLetters(broker.requeue, "q.dlq").count(), 0)
  })

  it("a purge with the name of the live queue removes nothing, and names both ways out", async () => {
    await using broker = await open()
    await broker.requeue.sendBatch("orders", [{ body: 1 }, { body: 2 }])
    const orders = deadLetters(broker.requeue, "orders")
    const refusal = await orders.purge({ all: true }).catch(String)
    assert.match(String(refusal), /QueueMismatch: nothing was done.*deadLettersOf.*force: "orders".*--force orders/)
    assert.strictEqual(await orders.count(), 2)
    const wrong = /force must be the name of this queue, got "order"/
    await expect(orders.purge({ all: true, force: "order" })).rejects.toThrow(wrong)
    assert.strictEqual(await orders.purge({ all: true, force: "orders" }), 2)
  })

  it("a live queue into which another tool moved a letter back is no dead-letter queue", async () => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = original))
    await bury(broker, "orders", "a")
    const [letter] = await Effect.runPromise(Port.oldest(service!, "orders.dlq", 1))
    const { body, headers, metadata } = letter!
    await Effect.runPromise(service!.publish([{ queue: "orders", body, headers, delay: 0, metadata }]))
    const purged = deadLetters(broker.requeue, "orders").purge({ all: true })
    await expect(purged).rejects.toMatchObject({ reason: "QueueMismatch" })
  })

  it("deadLettersOf finds the queues that a policy names, and each of them may be purged", async () => {
    await using broker = await open()
    const retry = { maxRetries: 0, deadLetter: { queue: "graves", routes: { undecodable: "unreadable" } } }
    const worker = await broker.requeue.consume("orders", { retry }, () => Promise.reject(new Error("no")))
    await broker.requeue.send("orders", 1)
    await turns()
    await broker.finish(worker.drain())
    const found = await deadLettersOf(broker.requeue, "orders")
    assert.deepStrictEqual(
      found.map(({ queue }) => queue),
      ["graves", "unreadable"]
    )
    assert.deepStrictEqual(await Promise.all(found.map(({ purge }) => purge({ all: true }))), [1, 0])
    const others = await deadLettersOf(broker.requeue, "others", { retry: { deadLetter: "elsewhere" } })
    assert.deepStrictEqual(
      others.map(({ queue }) => queue),
      ["elsewhere"]
    )
    const [standard] = await deadLettersOf(broker.requeue, queue("any"))
    assert.strictEqual(standard!.queue, "any.dlq")
  })

  it("a policy that deadLettersOf is given decides that call alone, and makes no queue known", async () => {
    await using broker = await open()
    const names = async (queue: string, retry?: RetryPolicy.Options) =>
      (await deadLettersOf(broker.requeue, queue, { retry })).map((found) => found.queue)
    await broker.requeue.consume("orders", { retry: { deadLetter: "graves" } }, () => {})
    await broker.requeue.send("live", 1)
    assert.deepStrictEqual(await names("orders", { deadLetter: "discard" }), [])
    assert.deepStrictEqual(await names("orders", { deadLetter: "live" }), ["live"])
    assert.deepStrictEqual(await names("orders"), ["graves"])
    assert.deepStrictEqual(await names("others", { deadLetter: "discard" }), [])
    assert.deepStrictEqual(await names("others"), ["others.dlq"])
    const [named] = await deadLettersOf(broker.requeue, "orders", { retry: { deadLetter: "live" } })
    for (const live of [deadLetters(broker.requeue, "live"), named!])
      await expect(live.purge({ all: true })).rejects.toMatchObject({ reason: "QueueMismatch" })
    assert.strictEqual((await broker.requeue.counts("live")).ready, 1)
  })

  it("a queue that two queues share is acted on for one of them only by origin or by its name", async () => {
    await using broker = await open()
    const retry = { maxRetries: 0, deadLetter: "graves" }
    for (const queue of ["one", "two"]) {
      const worker = await broker.requeue.consume(queue, { retry }, () => Promise.reject(new Error("no")))
      await broker.requeue.sendBatch(queue, [{ body: 1 }, { body: 2 }, { body: 3 }])
      await turns()
      await broker.finish(worker.drain())
    }
    const [graves] = await deadLettersOf(broker.requeue, "one")
    assert.lengthOf(await graves!.list(), 6)
    const [letter] = await graves!.list({ filter: ({ metadata }) => metadata.deadLetter?.queue === "two" })
    const body = new Uint8Array()
    for (const call of [
      () => graves!.purge({ all: true }),
      () => graves!.purge({ filter: () => true, dryRun: true }),
      () => graves!.redrive(),
      () => graves!.park(),
      () => graves!.edit(letter!, { body })
    ]) {
      const refusal = await call().catch(String)
      assert.match(
        String(refusal),
        /nothing was done: graves also has dead letters of two. For the letters of one alone, use { origin: "one" } or --origin one; for all letters, use { force: "graves" } or --force graves/
      )
    }
    assert.strictEqual(await graves!.count(), 6)
    assert.strictEqual(await broker.finish(graves!.purge({ all: true, origin: "one", dryRun: true })), 3)
    const filter = ({ metadata }: DeadLetters.DeadLetter) => metadata.id !== letter!.id
    assert.strictEqual(await broker.finish(graves!.purge({ filter, origin: "two" })), 2)
    assert.deepInclude(await broker.finish(graves!.redrive({ origin: "one" })), { redriven: 3, filtered: 1 })
    // One origin is left, but the policy of the other queue still names it.
    await expect(graves!.purge({ all: true })).rejects.toMatchObject({ reason: "QueueMismatch" })
    assert.strictEqual(await graves!.purge({ all: true, force: "graves" }), 1)
  })

  it("purge removes what a filter means, and leaves the rest as it was", async () => {
    await using broker = await open()
    await bury(broker, "q", "a", "b", "a")
    const letters = deadLetters(broker.requeue, "q.dlq")
    const filter = ({ origin }: DeadLetters.DeadLetter) => origin?.error.message === "a"
    const before = await letters.list()
    assert.strictEqual(await broker.finish(letters.purge({ filter, dryRun: true })), 2)
    assert.strictEqual(await broker.finish(letters.purge({ all: true, dryRun: true })), 3)
    assert.deepStrictEqual(await letters.list(), before)
    assert.strictEqual(await broker.finish(letters.purge({ filter })), 2)
    assert.deepStrictEqual(await letters.list(), [before[1]!])
    // Of a filter that forgets to answer, nothing may follow.
    assert.strictEqual(await broker.finish(letters.purge({ filter: (() => {}) as () => any })), 0)
    assert.strictEqual(await broker.finish(letters.purge({ filter: () => true, signal: AbortSignal.abort() })), 0)
    assert.strictEqual((await letters.list()).length, 1)
  })
})

/** Publishes a letter that says that it came from this queue. */
const forge = (service: Broker.Service, dead: string, queue: string) => {
  const error = { name: "Error", message: "forged" }
  const deadLetter = { queue, attempts: 1, reason: "permanent" as const, at: 0, error }
  const metadata = { ...Metadata.make("forged", 0), deadLetter }
  return Effect.runPromise(service.publish([{ queue: dead, body: new Uint8Array(), headers: {}, delay: 0, metadata }]))
}

const isForged = ({ id }: DeadLetters.DeadLetter) => id === "forged"

describe("redrive", () => {
  it("sends all back to where they came from; attempts start at 1 and redrives are counted", async () => {
    await using broker = await open()
    const routed = { retry: { maxRetries: 0, deadLetter: "graves" } }
    for (const queue of ["one", "two"]) {
      const worker = await broker.requeue.consume(queue, routed, () => Promise.reject(new Error("no")))
      await broker.requeue.send(queue, queue, { id: queue })
      await turns()
      await broker.finish(worker.drain())
    }
    const graves = deadLetters(broker.requeue, "graves")
    assert.deepInclude(await broker.finish(graves.redrive()), { ...all, redriven: 2 })
    for (const queue of ["one", "two"]) {
      const [message] = await deadLetters(broker.requeue, queue).list()
      assert.deepStrictEqual([message!.id, message!.redrives, message!.origin], [queue, 1, undefined])
      const attempts: Array<number> = []
      await broker.requeue.consume(queue, {}, (received) => attempts.push(received.attempts))
      await turns()
      assert.deepStrictEqual(attempts, [1])
    }
    assert.strictEqual(await graves.count(), 0)
  })

  it.each(["ghost", "__proto__", "../../etc"])(
    "letters that name the queue %s, which is missing, make none, also where they are chosen by it",
    async (name) => {
      let service: Broker.Service | undefined
      await using broker = await open({}, (original) => (service = original))
      await bury(broker, "q", "a")
      await forge(service!, "q.dlq", name)
      const letters = deadLetters(broker.requeue, "q.dlq")
      const reported = async (options: { readonly origin?: string }) => {
        const { failures, refused } = await broker.finish(letters.redrive({ ...options, filter: isForged }))
        return [refused, failures[0]?.error?.reason]
      }
      const planned = await broker.finish(letters.redrive({ dryRun: true }))
      assert.deepStrictEqual([planned.redriven, planned.refused], [1, 1])
      assert.deepStrictEqual(await reported({}), [1, "QueueMismatch"])
      assert.deepStrictEqual(await reported({ origin: name }), [1, "QueueMissing"])
      assert.isTrue((await broker.requeue.counts(name)).isMissing)
      const [forged] = await letters.list({ filter: isForged })
      await expect(letters.edit(forged!, { body: bytes("edited") })).rejects.toMatchObject({ reason: "QueueMismatch" })
      const made = letters.redrive({ create: true, origin: name })
      assert.strictEqual((await broker.finish(made)).redriven, 1)
    }
  )

  it.each<[string, string, object, boolean]>([
    ["one that nothing else names", "graves", {}, false],
    ["one that nothing else names, for which a queue may be made", "graves", { create: true }, false],
    ["the one that is asked for", "graves", { origin: "live" }, true],
    ["one that nothing else names, though the dead-letter queue is confirmed", "graves", { force: "graves" }, false],
    ["one with a default policy", "live.dlq", {}, true],
    ["one whose letters were parked", "live.dlq.parked", {}, true],
    ["one that is another where names are as they are", "live-dlq", {}, false],
    ["one with a longer name", "olive.dlq", {}, false],
    ["one with a name that is almost the same", "li-ve.dlq", {}, false],
    ["one of FIFO", "live-dlq.fifo", {}, false]
  ])("letters go back to the queue that they name: %s", async (_, dead, options, goes) => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = original))
    await broker.requeue.send("live", {})
    await forge(service!, dead, "live")
    await broker.finish(deadLetters(broker.requeue, dead).redrive(options))
    assert.strictEqual((await broker.requeue.counts("live")).ready, goes ? 2 : 1)
  })

  /** A broker that writes dots as hyphens, and `.fifo` at the end. */
  const hyphened = (broker: Broker.Service): Broker.Service => {
    const written = (name: string) => {
      const plain = name.replace(".fifo", "")
      return plain.replaceAll(".", "-") + (plain === name ? "" : ".fifo")
    }
    const isSame: Broker.Admin["isSame"] = (one, other) => Effect.succeed(written(one) === written(other))
    return { ...broker, admin: { ...broker.admin, isSame } }
  }

  it.each([
    ["live", "live-dlq"],
    ["live", "live-dlq-parked"],
    ["live.eu", "live-eu-dlq"],
    ["live.fifo", "live.dlq.fifo"],
    ["live.fifo", "live-dlq-parked.fifo"]
  ])("letters of %s go back from %s, where the broker writes its dead-letter queue so", async (live, dead) => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = hyphened(original)))
    await broker.requeue.send(live, {})
    await forge(service!, dead, live)
    await broker.finish(deadLetters(broker.requeue, dead).redrive())
    assert.strictEqual((await broker.requeue.counts(live)).ready, 2)
  })

  it("letters go back to a queue that its consumers and they write otherwise, with a dead-letter queue of its own", async () => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = hyphened(original)))
    const consumer = await broker.requeue.consume("live-eu", { retry: { deadLetter: "all.graves" } }, () => {})
    await broker.finish(consumer.drain())
    await broker.requeue.send("live.eu", {})
    await forge(service!, "all-graves", "live.eu")
    assert.strictEqual((await broker.finish(deadLetters(broker.requeue, "all-graves").redrive())).redriven, 1)
  })

  it("letters never go to the queue that they are in, by another name of it", async () => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = hyphened(original)))
    await forge(service!, "q.dlq", "q-dlq")
    const letters = deadLetters(broker.requeue, "q.dlq")
    const to = "q-dlq"
    const [letter] = await letters.list()
    const moves = [
      () => letters.redrive({ to }),
      () => letters.redrive({ to, dryRun: true }),
      () => letters.park({ to }),
      () => letters.redrive({ origin: to, create: true })
    ]
    for (const move of moves) {
      const { failures, redriven, refused } = await broker.finish(move())
      assert.deepStrictEqual([redriven, refused, failures[0]?.error?.reason], [0, 1, "QueueMismatch"])
    }
    await expect(letters.edit(letter!, { to, body: bytes("edited") })).rejects.toMatchObject({
      reason: "QueueMismatch"
    })
    assert.deepStrictEqual([await letters.count(), (await broker.requeue.counts(to)).isMissing], [1, true])
  })

  it("letters go back to a queue whose consumers send their dead letters there, and to no other that is known", async () => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = original))
    for (const [queue, deadLetter] of [
      ["live", "graves"],
      ["other", "elsewhere"]
    ] as const) {
      const consumer = await broker.requeue.consume(queue, { retry: { deadLetter } }, () => {})
      await broker.finish(consumer.drain())
      await forge(service!, "graves", queue)
    }
    const { failures, redriven } = await broker.finish(deadLetters(broker.requeue, "graves").redrive())
    assert.deepStrictEqual([redriven, failures.map(({ error }) => error?.queue)], [1, ["other"]])
  })

  it("letters of a queue are told from those of one that is called almost the same", async () => {
    let service: Broker.Service | undefined
    await using broker = await open({}, (original) => (service = original))
    for (const queue of ["a-b", "a.b"]) await forge(service!, "graves", queue)
    const letters = deadLetters(broker.requeue, "graves")
    assert.strictEqual(await broker.finish(letters.purge({ all: true, origin: "a-b" })), 1)
    assert.deepStrictEqual(
      (await letters.list()).map(({ origin }) => origin?.queue),
      ["a.b"]
    )
  })

  it("an aborted list answers what it has seen", async () => {
    await using broker = await open()
    await bury(broker, "q", "a")
    const letters = deadLetters(broker.requeue, "q.dlq")
    const signal = AbortSignal.abort()
    assert.deepStrictEqual(await letters.list({ signal }), [])
    assert.strictEqual((await letters.group({ signal })).browsed, 0)
    const stop = new AbortController()
    const onProgress = () => stop.abort()
    assert.strictEqual((await letters.list({ signal: stop.signal, onProgress })).length, 1)
  })

  it("an empty queue of dead letters is done at once", async () => {
    await using broker = await open()
    await using _worker = await broker.requeue.consume("q", {}, () => {})
    assert.deepInclude(await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive()), all)
    assert.strictEqual(broker.now(), 0)
  })

  it("takes no more than the limit, oldest first, and leaves the others as they were", async () => {
    await using broker = await open()
    await bury(broker, "q", "a", "b", "c")
    const letters = deadLetters(broker.requeue, "q.dlq")
    const before = await letters.list()
    assert.deepInclude(await broker.finish(letters.redrive({ limit: 2 })), { ...all, redriven: 2 })
    assert.deepStrictEqual(await broker.waiting("q"), [`"a"`, `"b"`])
    assert.deepStrictEqual(await letters.list(), before.slice(2))
  })

  it("what the filter passes over stays in its order, with its attempts", async () => {
    await using broker = await open()
    await bury(broker, "q", "a", "b", "c", "d")
    const waiting = async () => (await Effect.runPromise(broker.control.snapshot("q.dlq"))).ready
    const before = await waiting()
    const letters = deadLetters(broker.requeue, "q.dlq")
    const filter = ({ metadata }: { readonly metadata: { readonly id: string } }) => "bd".includes(metadata.id)
    assert.deepInclude(await broker.finish(letters.redrive({ filter })), { ...all, redriven: 2, filtered: 2 })
    assert.deepStrictEqual(await waiting(), [before[0]!, before[2]!])
    assert.deepStrictEqual(await broker.waiting("q"), [`"b"`, `"d"`])
  })

  it("a dry run counts and changes nothing", async () => {
    await using broker = await open()
    await bury(broker, "q", "a", "b")
    const letters = deadLetters(broker.requeue, "q.dlq")
    const before = await Effect.runPromise(broker.control.snapshot("q.dlq"))
    const report = await broker.finish(letters.redrive({ dryRun: true, filter: ({ metadata }) => metadata.id === "a" }))
    assert.deepInclude(report, { ...all, redriven: 1, filtered: 1 })
    assert.deepStrictEqual(await Effect.runPromise(broker.control.snapshot("q.dlq")), before)
    assert.deepStrictEqual(await broker.waiting("q"), [])
  })

  it("can go elsewhere, and foreign messages go only there", async () => {
    await using broker = await open()
    await bury(broker, "q", "a")
    await Effect.runPromise(broker.control.publishRaw("q.dlq", bytes("foreign")))
    const letters = deadLetters(broker.requeue, "q.dlq")
    const home = await broker.finish(letters.redrive({ limit: 1, dryRun: true }))
    assert.deepInclude(home, { ...all, redriven: 1 })
    assert.deepInclude(await broker.finish(letters.redrive()), { ...all, redriven: 1, unknownOrigin: 1 })
    assert.deepStrictEqual(await broker.waiting("q.dlq"), ["foreign"])
    assert.deepInclude(await broker.finish(letters.redrive({ to: "elsewhere", create: true })), { ...all, redriven: 1 })
    assert.deepStrictEqual(await broker.waiting("elsewhere"), ["foreign"])
  })
})
