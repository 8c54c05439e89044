/** What happens to messages when SQS, the network and consumers misbehave: the books balance. */
import { Books, Workload } from "@requeue/conformance"
import { BatchPolicy, Consumer } from "@requeue/core"
import type { Fault, StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import {
  consume,
  drain,
  ids,
  idOf,
  left,
  no,
  on,
  outgoing,
  publishAll,
  queueName,
  until,
  untilEmpty,
  urlOf,
  type Run
} from "../real/world.ts"

// All tests of this file run at once, each that wants faults behind a proxy of its own.
const { another, behind, url } = await strict()

// What a lost answer hides comes again after its lease; one of a few seconds is lost on a machine that stands still.
const quick = { url, visibilityTimeout: 10_000, requestTimeout: 5000 }
const actions = ["ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"]

const all = (make: (action: string) => Fault) => actions.map(make)
const calls = (names: ReadonlyArray<string>, make: (action: string) => Fault) => names.map(make)

describe.concurrent("300 messages, while", () => {
  test.each<[name: string, ask: (proxy: StrictSqs) => ReadonlyArray<Fault>]>([
    ["SQS throttles in bursts", ({ fail }) => all((action) => fail({ action, times: 6 }))],
    ["and as other services do", ({ fail }) => all((action) => fail({ action, times: 6 }, "ThrottlingException"))],
    ["SQS fails", ({ fail }) => all((action) => fail({ action, every: 2, times: 8 }, "InternalFailure"))],
    ["SQS is not available", ({ fail }) => [fail({ times: 20 }, "ServiceUnavailable")]],
    [
      "entries of batches fail",
      ({ failEntries }) => calls(actions.slice(1), (action) => failEntries({ action, times: 6 }, 5))
    ],
    [
      "connections break before the answer",
      ({ lose }) => all((action) => lose({ action, every: 3, times: 4 }, "reset"))
    ],
    ["answers never come", ({ lose }) => all((action) => lose({ action, every: 4, times: 2 }))]
  ])("%s", async (_, ask) => {
    await using own = await another()
    const queue = queueName("faults")
    const books = Books.make(ids(300))
    let faults: ReadonlyArray<Fault> = []
    await on({ ...quick, url: own.url }, (broker) =>
      Effect.gen(function* () {
        yield* Workload.start(queue, books)
        faults = ask(own)
        yield* publishAll(broker, queue, books.published, 50)
        yield* Books.untilEnded(books, { within: 120_000 })
        yield* untilEmpty(behind, queue)
      })
    )
    for (const fault of faults) assert.strictEqual(fault.left(), 0, "a fault did not happen")
    assert.strictEqual(await left(behind, queue), 0, "still queued")
    Books.balance(books, { queued: [], deadLetters: (await drain(behind, `${queue}.dlq`)).map(idOf) })
    assert.deepStrictEqual([...books.deadLettered].toSorted(), books.published.filter(Workload.isDoomed).toSorted())
  })
})

test.concurrent.each(["single messages", "batches"])(
  "a FIFO queue whose answers are lost and whose calls fail, %s: each group is done in order",
  async (kind) => {
    await using own = await another()
    const queue = `${queueName("groups")}.fifo`
    const [names, done, failed]: [ReadonlyArray<string>, Array<string>, Set<string>] = [ids(60), [], new Set()]
    const groupOf = (id: string): number => Number(id.slice(1)) % 6
    await on({ ...quick, url: own.url }, (broker) =>
      Effect.gen(function* () {
        const isDone = (id: string): boolean => {
          if (Number(id.slice(1)) % 7 === 0 && !failed.has(id)) {
            failed.add(id)
            return false
          }
          if (!done.includes(id)) done.push(id)
          return true
        }
        const batch = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 50 })
        yield* kind === "batches"
          ? Consumer.startBatch(queue, { batch, concurrency: 3 }, ({ messages }) => {
              const halted = new Set<number>()
              for (const message of messages) {
                const group = groupOf(message.id)
                if (halted.has(group) || isDone(message.id)) continue
                halted.add(group)
                message.retry()
              }
            })
          : consume(queue, [], { concurrency: 10 }, ({ id }) => (isDone(id) ? Effect.void : no))
        own.lose({ action: "SendMessageBatch", times: 3, every: 2 }, "reset")
        own.lose({ action: "DeleteMessageBatch", times: 4, every: 3 }, "reset")
        own.lose({ action: "ReceiveMessage", times: 2, every: 5 }, "reset")
        own.failEntries({ action: "DeleteMessageBatch", times: 3, every: 4 }, 2)
        own.failEntries({ action: "ChangeMessageVisibilityBatch", times: 3 }, 2)
        own.fail({ action: "DeleteMessageBatch", times: 6, every: 5 })
        for (const id of names) {
          const message = outgoing(queue, id, { headers: { "message-group-id": `group-${groupOf(id)}` } })
          yield* Effect.retry(broker.publish([message]), Schedule.spaced(100))
        }
        yield* until("all of them", () => done.length === names.length)
        yield* untilEmpty(behind, queue)
      })
    )
    assert.strictEqual(failed.size, 9)
    for (const group of [0, 1, 2, 3, 4, 5]) {
      const mine = (all: ReadonlyArray<string>) => all.filter((id) => groupOf(id) === group)
      assert.deepStrictEqual(mine(done), mine(names))
    }
    assert.deepStrictEqual(await drain(behind, `${queue}.dlq`), [])
  }
)

describe.concurrent("a consumer's process", () => {
  test("killed in the middle of its handlers: their messages come again, and are counted", async () => {
    const queue = queueName("process")
    const runs: Array<Run> = []
    await on(quick, (broker) => publishAll(broker, queue, ids(10)))
    const child = spawn(process.execPath, [fileURLToPath(new URL("child.ts", import.meta.url)), url, queue], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (chunk) => (said += String(chunk)))
    await Effect.runPromise(until("three runs", () => said.split("run ").length > 3))
    child.kill("SIGKILL")
    await on(quick, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 3 })
        yield* until("all ten", () => new Set(runs.map(({ id }) => id)).size === 10)
        yield* untilEmpty(behind, queue)
      })
    )
    const attempts = new Map(runs.map((run) => [run.id, run.attempts]))
    const begun = [...said.matchAll(/run (\S+)/g)].map(([, id]) => id!)
    assert.strictEqual(attempts.size, 10)
    for (const id of begun) assert.isAtLeast(attempts.get(id)!, 2)
    assert.deepStrictEqual(await drain(behind, `${queue}.dlq`), [])
  })

  test("killed by its message each time: SQS's own redrive ends that", async () => {
    const queue = queueName("poison")
    await on(quick, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(consume(queue, []))
        yield* broker.publish([outgoing(queue, "poison")])
      })
    )
    const QueueUrl = await urlOf(behind, queue)
    const { Attributes = {} } = await behind.getQueueAttributes({ QueueUrl, AttributeNames: ["RedrivePolicy"] })
    const { maxReceiveCount } = JSON.parse(Attributes.RedrivePolicy ?? "{}") as { maxReceiveCount: number }
    // As many consumers die, and one more poll comes.
    for (let count = 0; count <= maxReceiveCount; count++) {
      await behind.receiveMessage({ QueueUrl, VisibilityTimeout: 0 })
    }
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["poison"])
  })
})

test.concurrent("duplicates: each message is settled, whichever of its deliveries comes first", async () => {
  await using own = await another()
  const queue = queueName("duplicates")
  const runs: Array<Run> = []
  await on({ ...quick, url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { concurrency: 20 }, () => Effect.sleep(50))
      own.duplicate(50)
      yield* publishAll(broker, queue, ids(100))
      yield* until("all", () => new Set(runs.map(({ id }) => id)).size === 100)
      yield* untilEmpty(behind, queue)
    })
  )
  assert.isAbove(runs.length, 100, "no duplicate ran: the test shows nothing")
  assert.deepStrictEqual(await drain(behind, `${queue}.dlq`), [])
})
