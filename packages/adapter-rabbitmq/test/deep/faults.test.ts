/** Servers, connections and consumers die, and the books of the messages balance. */
import { Books, Workload } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { Consumer, type Event, RetryPolicy } from "@requeue/core"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, test } from "vitest"
import { server } from "../real/server.ts"
import { balance, drainIds, ids, on, outgoing, publishAll, queueName, quiet, reasonOf, until } from "../world.ts"

const one = await server()
const can = one.broker.nodes.length > 0

/** Kills that a run does; the issue's twenty with REQUEUE_KILLS=20. */
const kills = Number(process.env["REQUEUE_KILLS"] ?? 3)

describe("a broker that is killed", () => {
  test.runIf(can)(`${kills} times while 5,000 messages are in progress: nothing is lost`, async () => {
    const queue = queueName("killed")
    const books = Books.make(ids(5000))
    const resumed: Array<number> = []
    const rejections: Array<unknown> = []
    const onRejection = (error: unknown) => rejections.push(error)
    process.on("unhandledRejection", onRejection)
    const prefetch = 21
    await on({ url: one.url }, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, books)
        // A server that is killed soon after it has made a queue may forget it, with its messages: it writes its lists later.
        const written = "catch mnesia:sync_log(), [dets:sync(Table) || Table <- dets:all()]."
        yield* Effect.promise(() => one.broker.nodes[0]!.ctl("eval", written))
        const publishing = yield* Effect.forkChild(publishAll(broker, queue, books.published))
        for (let kill = 1; kill <= kills; kill++) {
          yield* until("progress", () => Books.ended(books) >= Math.min(400, 4500 / kills) * kill)
          yield* Effect.promise(() => one.broker.kill())
          yield* until("the loss to be noticed", () => broker.connection().state === "down")
          yield* Effect.promise(() => one.broker.start())
          const [up, before] = [Date.now(), books.runs.length]
          yield* until("a run after the start", () => books.runs.length > before)
          resumed.push(Date.now() - up)
        }
        yield* Fiber.join(publishing)
        yield* Books.untilEnded(books)
        yield* quiet(broker)
      })
    )
    process.off("unhandledRejection", onRejection)
    const runs = Map.groupBy(books.runs, (id) => id)
    const again = [...runs].filter(([id, all]) => all.length > Workload.runsOf(id))
    const stale = books.events.filter(
      (event) => event._tag === "SettleFailed" && reasonOf(event.error) === "QueueMismatch"
    )
    console.log(`resumed after ${resumed.map((ms) => `${ms}`).join(", ")} ms; ${again.length} messages ran again`)
    assert.deepStrictEqual(rejections, [])
    await balance(one.url, queue, books)
    assert.deepStrictEqual([...books.deadLettered].toSorted(), books.published.filter(Workload.isDoomed).toSorted())
    assert.strictEqual(stale.length, 0)
    // Acks that the server has forgotten run nothing again. Messages in handlers, and unconfirmed publications, do.
    assert.isAtMost(again.length, kills * (prefetch + 100))
  })
})

test("what waits for a channel when a program ends is settled before the end", async () => {
  const queue = queueName("ending")
  const events: Array<string> = []
  await on({ url: one.url }, (broker) => publishAll(broker, queue, ids(1)))
  await on({ url: one.proxied }, () =>
    Effect.gen(function* () {
      const onEvent = ({ _tag }: Event.Event) => void events.push(_tag)
      const failing = () => Effect.fail(new Error("no"))
      yield* Effect.sync(() => one.proxy.delay(100))
      // Its dead letter is the first that is published on this connection.
      yield* Consumer.start(queue, { retry: RetryPolicy.make({ maxRetries: 0 }), onEvent }, failing)
      yield* until("a run", () => events.includes("AttemptFailed"))
    })
  ).finally(() => one.proxy.delay(0))
  assert.strictEqual(events.at(-1), "DeadLettered")
  assert.deepStrictEqual(await drainIds(one.url, `${queue}.dlq`), ids(1))
  assert.deepStrictEqual(await drainIds(one.url, queue), [])
})

describe("a connection", () => {
  test("cut ten times in the middle of the work: nothing is lost", async () => {
    const queue = queueName("cut")
    const books = Books.make(ids(2000))
    await on({ url: one.proxied }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, books.published)
        yield* Workload.start(queue, books)
        for (let cut = 1; cut <= 10; cut++) {
          yield* until("progress", () => Books.ended(books) >= 150 * cut)
          one.proxy.cut()
        }
        yield* Books.untilEnded(books)
        yield* quiet(broker)
      })
    )
    const { queued } = await balance(one.url, queue, books)
    // Of a copy whose confirmation was cut off there may be two, and the second one may come when all have ended.
    for (const id of queued) assert.isTrue(books.acked.has(id) || books.deadLettered.has(id), id)
  })
})

describe("a consumer's process", () => {
  test("killed in the middle of its handlers: their messages come again, and are counted", async () => {
    const queue = queueName("process")
    const runs = new Map<string, number>()
    const acked = new Set<string>()
    const onEvent = (event: Event.Event) => {
      if (event._tag === "Succeeded") acked.add(event.id)
    }
    await on({ url: one.url }, (broker) => publishAll(broker, queue, ids(10)))
    const child = spawn(process.execPath, [new URL("child.ts", import.meta.url).pathname, one.url, queue], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (bytes) => (said += String(bytes)))
    await Effect.runPromise(until("three runs", () => said.split("run ").length > 3))
    const closed = once(child, "close")
    child.kill("SIGKILL")
    await closed
    await on({ url: one.url }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(
          queue,
          { concurrency: 3, onEvent },
          (message) => void runs.set(message.id, message.attempts)
        )
        yield* until("acks of all ten", () => acked.size === 10)
      })
    )
    const begun = [...said.matchAll(/run (\S+)/g)].map(([, id]) => id!)
    for (const id of begun) assert.isAtLeast(runs.get(id)!, 2)
    assert.deepStrictEqual(await drainIds(one.url, queue), [])
    assert.deepStrictEqual(await drainIds(one.url, `${queue}.dlq`), [])
  })
})

describe("a server that is short of memory", () => {
  test.runIf(can)("blocks publishers for a bounded time, and acks go on; then they resume", async () => {
    const queue = queueName("alarm")
    const node = one.broker.nodes[0]!
    const acked: Array<string> = []
    const limit = (share: string) => Effect.promise(() => node.ctl("set_vm_memory_high_watermark", share))
    await on({ url: one.url, publishTimeout: 1500 }, (broker) =>
      Effect.gen(function* () {
        yield* publishAll(broker, queue, ids(20))
        yield* limit("0.00000001")
        yield* Effect.ensuring(
          Effect.gen(function* () {
            // The alarm is raised a while later. A message that is published meanwhile may wait for its confirmation in vain.
            const raised = yield* Effect.flip(
              Effect.forever(
                Effect.catchIf(
                  broker.publish([outgoing(queue, "late")]),
                  ({ reason }) => reason === "Timeout",
                  () => Effect.void
                ).pipe(Effect.andThen(Effect.sleep(100)))
              )
            )
            assert.strictEqual(raised.reason, "Throttled")
            const again = yield* Effect.flip(broker.publish([outgoing(queue, "later")]))
            assert.strictEqual(again.reason, "Throttled")
            yield* Consumer.start(queue, {}, (message) => void acked.push(message.id))
            yield* until("acks", () => new Set(acked).size >= 20)
          }),
          limit("0.6")
        )
        yield* Effect.retry(broker.publish([outgoing(queue, "at last")]), Schedule.spaced(100))
        yield* until("the last one", () => acked.includes("at last"))
      })
    )
  })
})
