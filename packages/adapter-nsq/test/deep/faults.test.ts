/** What happens to messages when nsqd, nsqlookupd, connections and consumers die: the books balance. */
import { Books, Workload } from "@requeue/conformance"
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, test } from "vitest"
import { server } from "./server.ts"
import { channels, drainIds, held, isWorked, register } from "../real/raw.ts"
import { consume, ids, now, on, publishAll, queueName, until, type Run } from "../world.ts"

/** Runs beyond those that the messages take while nothing breaks. */
const duplicates = ({ runs }: Books.Books): number =>
  [...Map.groupBy(runs, (id) => id)].reduce(
    (sum, [id, each]) => sum + Math.max(0, each.length - Workload.runsOf(id)),
    0
  )

const pair = await server({ nodes: 2 })
const first = pair.broker.nodes[0]!
const second = pair.broker.nodes[1]!
const found = { ...pair.found, lookupdInterval: 500 }

/** Everything is acked or a dead letter, seen in the broker; nothing else is left, and those that must fail are dead. */
const balance = async (queue: string, books: Books.Books, http = pair.http) => {
  const deadLetters = await drainIds(http, queue, "dead letters")
  const queued = await drainIds(http, queue, "work")
  assert.deepStrictEqual(queued, [])
  Books.balance(books, { deadLetters, queued })
  assert.deepStrictEqual([...books.deadLettered].toSorted(), books.published.filter(Workload.isDoomed).toSorted())
}

/** Every message has ended, and none is left in the broker that may come again. */
const untilWorked = (queue: string, books: Books.Books, http = pair.http) =>
  Effect.andThen(
    Books.untilEnded(books),
    until("nothing but dead letters", () => isWorked(http, queue))
  )

describe("an nsqd", () => {
  test.each([{ restarts: 10, count: 5000 }])(
    "restarted $restarts times in order while $count messages are in progress: nothing is lost",
    async ({ count, restarts }) => {
      const queue = queueName("restarted")
      const all = ids(count)
      const books = Books.make(all)
      await on({ nsqd: [`127.0.0.1:${first.port}`] }, (broker) =>
        Effect.gen(function* () {
          yield* Workload.start(queue, books)
          const publishing = yield* Effect.forkChild(publishAll(broker, queue, all))
          for (let restart = 1; restart <= restarts; restart++) {
            yield* until("progress", () => Books.ended(books) >= ((0.8 * count) / restarts) * restart)
            yield* Effect.promise(() => first.restart())
            const before = books.runs.length
            yield* until(`a run after start ${restart}`, () => books.runs.length > before)
          }
          yield* Fiber.join(publishing)
          yield* untilWorked(queue, books)
        })
      )
      await balance(queue, books)
    }
  )

  test("one of two, found through nsqlookupd, stopped and back: the other goes on, and nothing is lost", async () => {
    const queue = queueName("one-of-two")
    const all = ids(3000)
    const books = Books.make(all)
    const at = ({ port }: { readonly port: number }) => ({ nsqd: [`127.0.0.1:${port}`] })
    await on(at(first), (broker) => publishAll(broker, queue, all.slice(0, 1000)))
    await on(at(second), (broker) => publishAll(broker, queue, all.slice(1000, 2000)))
    await on(found, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, books)
        yield* until("progress", () => Books.ended(books) >= 300)
        yield* Effect.promise(() => second.stop())
        const stopped = Books.ended(books)
        yield* publishAll(broker, queue, all.slice(2000, 2500))
        yield* until("progress without it", () => Books.ended(books) >= stopped + 500)
        yield* Effect.promise(() => second.start())
        yield* publishAll(broker, queue, all.slice(2500))
        yield* untilWorked(queue, books)
      })
    )
    await balance(queue, books)
  })
})

describe("one of three nsqd", () => {
  test("dies for good in the middle of the work: nothing is lost but what it had", async () => {
    const three = await server({ nodes: 3 })
    const queue = queueName("for-good")
    const portions = [ids(800, "a"), ids(800, "b"), ids(800, "c")] as const
    const later = ids(300, "d")
    const books = Books.make([...portions.flat(), ...later])
    // What it had: what was sent to it, and dead letters that it may have stored.
    let couldBeThere: ReadonlySet<string> = new Set()
    for (const [index, all] of portions.entries())
      await on({ nsqd: [three.direct.nsqd![index]!] }, (broker) => publishAll(broker, queue, all))
    await on({ ...three.found, lookupdInterval: 500 }, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, books)
        yield* until("progress", () => Books.ended(books) >= 600)
        yield* Effect.promise(() => three.broker.nodes[2]!.kill())
        couldBeThere = new Set([...portions[2], ...books.deadLettered])
        yield* publishAll(broker, queue, later)
        yield* Books.untilEnded(books, { of: [...portions[0], ...portions[1], ...later] })
        const alive = three.http.slice(0, 2)
        yield* until("nothing but dead letters", () => isWorked(alive, queue))
      })
    )
    const letters = new Set(await drainIds(three.http.slice(0, 2), queue, "dead letters"))
    const lost = books.published.filter((id) => !books.acked.has(id) && !letters.has(id))
    console.log(`${lost.length} of ${portions[2].length} died with the nsqd, ${duplicates(books)} runs too many`)
    for (const id of lost) assert.isTrue(couldBeThere.has(id), id)
  })
})

describe("a connection", () => {
  test("cut ten times in the middle of the work: nothing is lost", async () => {
    const queue = queueName("cut")
    const all = ids(2000)
    const books = Books.make(all)
    await on({ ...pair.wired, messageTimeout: 3000 }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, all)
        yield* Workload.start(queue, books)
        for (let cut = 1; cut <= 10; cut++) {
          yield* until("progress", () => Books.ended(books) >= 150 * cut)
          for (const wire of pair.wires) wire.cut()
        }
        yield* untilWorked(queue, books)
      })
    )
    await balance(queue, books)
  })
})

describe("nsqlookupd", () => {
  test("gone for a while: what was found goes on, and what comes meanwhile is found afterwards", async () => {
    const three = await server({ nodes: 3 })
    const queue = queueName("lookupd")
    const all = ids(1200)
    const books = Books.make(all)
    await on({ ...three.found, lookupdInterval: 500 }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, all.slice(0, 500))
        yield* Workload.start(queue, books)
        yield* until("progress", () => Books.ended(books) >= 100)
        yield* Effect.promise(() => three.broker.lookupd!.kill())
        yield* publishAll(broker, queue, all.slice(500, 1000))
        yield* Books.untilEnded(books, { of: all.slice(0, 1000) })
        const known = yield* Effect.promise(() => channels(three.http, queue))
        const other = three.http.findIndex((http) => known.every((channel) => channel.http !== http))
        const newcomer = { nsqd: [three.direct.nsqd![other]!] }
        yield* Effect.promise(() => on(newcomer, (publisher) => publishAll(publisher, queue, all.slice(1000))))
        yield* Effect.promise(() => three.broker.lookupd!.start())
        yield* Effect.promise(() => register(three.http, three.found.lookupd![0]!))
        yield* untilWorked(queue, books, three.http)
      })
    )
    await balance(queue, books, three.http)
  })
})

describe("nsqlookupd, the only one", () => {
  test("restarted five times while messages come steadily: neither sends nor runs notice", async () => {
    const queue = queueName("lookupd-restarts")
    const all = ids(5000)
    const books = Books.make(all)
    let [longest, last, restarts] = [0, 0, 0]
    await on({ ...found, lookupdInterval: 200 }, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start<string>(queue, { concurrency: 5, onEvent: books.onEvent }, ({ id }) => {
          longest = Math.max(longest, last === 0 ? 0 : now() - last)
          last = now()
          books.ran(id)
        })
        const publishing = yield* Effect.forkChild(
          Effect.forEach(all, (id) => Effect.andThen(publishAll(broker, queue, [id]), Effect.sleep(2)))
        )
        for (; restarts < 5; restarts++) {
          yield* until("progress", () => Books.ended(books) >= ((0.8 * all.length) / 5) * (restarts + 1))
          yield* Effect.promise(() => pair.broker.lookupd!.restart())
        }
        yield* Fiber.join(publishing)
        yield* Books.untilEnded(books)
      })
    )
    console.log(`the longest gap between two runs was ${Math.round(longest)} ms, ${duplicates(books)} runs too many`)
    assert.strictEqual(books.runs.length, all.length)
    assert.isBelow(longest, 1000)
  })
})

/** Starts a consumer of three handlers in a process of its own; answers what it has said so far, and what kills it. */
const start = (queue: string, ending: number) => {
  const program = new URL("child.ts", import.meta.url).pathname
  const child = spawn(process.execPath, [program, first.url, queue, String(ending)], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  const closed = once(child, "close")
  let said = ""
  child.stdout.on("data", (bytes) => (said += String(bytes)))
  return {
    runs: (): ReadonlyArray<string> => [...said.matchAll(/run (\S+) \d+\n/g)].map(([, id]) => id!),
    kill: async () => {
      child.kill("SIGKILL")
      await closed
    }
  }
}

describe("a consumer's process", () => {
  test("killed in the middle of its handlers: their messages come again, and are counted", async () => {
    const queue = queueName("process")
    const runs: Array<Run> = []
    await on({ nsqd: [`127.0.0.1:${first.port}`] }, (broker) => publishAll(broker, queue, ids(10)))
    const child = start(queue, 0)
    await Effect.runPromise(until("three runs", () => child.runs().length >= 3))
    await child.kill()
    await on(pair.direct, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 3 })
        yield* until("all ten", () => new Set(runs.map(({ id }) => id)).size === 10)
        yield* until("an empty queue", async () => (await held(pair.http, queue)) === 0)
      })
    )
    for (const id of child.runs()) assert.isAtLeast(runs.find((run) => run.id === id)!.attempts, 2)
    assert.strictEqual(await held(pair.http, queue), 0)
  })

  test("killed four times while others wait: nothing is lost, and only what it had in hand runs again", async () => {
    const queue = queueName("processes")
    const all = ids(2000)
    await on({ nsqd: [`127.0.0.1:${first.port}`] }, (broker) => publishAll(broker, queue, all))
    const killed: Array<string> = []
    for (let kill = 0; kill < 4; kill++) {
      const child = start(queue, all.length / 5)
      await Effect.runPromise(until("its last runs", () => child.runs().length === all.length / 5 + 3))
      await child.kill()
      killed.push(...child.runs())
    }
    const runs: Array<Run> = []
    await on(pair.direct, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 3 })
        // A message on its way to a client is in no count.
        const ran = () => new Set([...killed, ...runs.map(({ id }) => id)])
        yield* until("each to run", () => ran().size === all.length)
        yield* until("an empty queue", async () => (await held(pair.http, queue)) === 0)
      })
    )
    const ran = [...killed, ...runs.map(({ id }) => id)]
    assert.sameMembers([...new Set(ran)], [...all])
    console.log(`${ran.length - all.length} of ${all.length} messages ran twice`)
    // Three that run, and those whose end nsqd had not read.
    assert.isAtMost(ran.length - all.length, 4 * 2 * 3)
  })
})

describe("an nsqd that is killed", () => {
  test("loses what is in flight or deferred, and nothing that it has stored", async () => {
    const fragile = await server({ flags: { "mem-queue-size": 0, "sync-every": 1 } })
    const queue = queueName("killed")
    const runs: Array<Run> = []
    const acked = new Set<string>()
    const deferred = ids(20, "d")
    const flying = ids(20, "f")
    const stored = ids(200, "s")
    const later = ids(200, "l")
    const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant("10 minutes") })
    const onEvent: Consumer.Options["onEvent"] = (event) => {
      if (event._tag === "Succeeded") acked.add(event.id)
    }
    await on(fragile.direct, (broker) =>
      Effect.gen(function* () {
        const isUp = Promise.withResolvers<void>()
        yield* consume(queue, runs, { retry, concurrency: 20, onEvent }, (message) => {
          if (message.id.startsWith("d")) return message.retry()
          return message.id.startsWith("f") ? isUp.promise : undefined
        })
        yield* publishAll(broker, queue, deferred)
        yield* publishAll(broker, queue, flying)
        yield* until("handlers that have them all", () => runs.length === 40)
        const sum = async (of: "deferred" | "inFlight" | "untaken") =>
          (await channels(fragile.http, queue)).reduce((total, each) => total + each[of], 0)
        yield* until("what is deferred", async () => (await sum("deferred")) === deferred.length)
        yield* publishAll(broker, queue, stored)
        // What a topic is just handing to its channel would be lost as well.
        yield* until("the channel to have them", async () => (await sum("untaken")) === 0)
        // The consumer has one more in hand than its handlers.
        yield* until("one more in flight", async () => (await sum("inFlight")) === flying.length + 1)
        yield* Effect.promise(() => fragile.broker.kill())
        yield* Effect.promise(() => fragile.broker.start())
        isUp.resolve()
        yield* publishAll(broker, queue, later)
        const ofStored = () => stored.filter((id) => acked.has(id)).length
        yield* until("what was stored", () => ofStored() >= stored.length - 1)
        yield* until("what came afterwards", () => later.every((id) => acked.has(id)))
        yield* until("an empty channel", async () => (await held(fragile.http, queue)) === 0)
        const lost = [...deferred, ...flying, ...stored].filter((id) => !acked.has(id))
        console.log(
          `${lost.length} of 41 messages that were deferred or in flight are lost, and none of 199 stored ones`
        )
        assert.includeMembers(lost, [...deferred, ...flying])
        assert.isAtMost(lost.length, deferred.length + flying.length + 1)
      })
    )
  })
})
