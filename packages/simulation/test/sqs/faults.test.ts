/** What happens to messages when SQS and the network misbehave: the books balance. */
import { Books, Workload } from "@requeue/conformance"
import { Broker, Consumer, BatchPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { assert, describe, test } from "vitest"
import type { Fault } from "../../src/servers/sqs/Faults.ts"
import { ids, no, on, type Run, until, type World } from "./world.ts"

const actions = ["ReceiveMessage", "SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"]
const queue = "orders"

describe("300 messages, while", () => {
  const all = (make: (action: string) => Fault, some = actions): ReadonlyArray<Fault> => some.map(make)
  test.each<[name: string, ask: (world: World) => ReadonlyArray<Fault>]>([
    ["SQS throttles in bursts", ({ fail }) => all((action) => fail(action, "RequestThrottled", { times: 6 }))],
    ["and as other services do", ({ fail }) => all((action) => fail(action, "ThrottlingException", { times: 6 }))],
    ["SQS fails", ({ fail }) => all((action) => fail(action, "InternalFailure", { every: 2, times: 8 }))],
    ["SQS is not available", ({ fail }) => all((action) => fail(action, "ServiceUnavailable", { times: 5 }))],
    [
      "entries of batches fail",
      ({ failEntries }) =>
        all((action) => failEntries(action, "InternalFailure", [0, 1, 2, 3, 4], { times: 6 }), actions.slice(1))
    ],
    [
      "connections break before the answer",
      ({ lose }) => all((action) => lose(action, "reset", { every: 3, times: 4 }))
    ],
    ["answers never come", ({ lose }) => all((action) => lose(action, "silence", { every: 4, times: 2 }))]
  ])("%s", (_, ask) =>
    on({}, (world) =>
      Effect.gen(function* () {
        const books = Books.make(ids(300))
        const one = yield* world.broker()
        yield* Effect.provideService(Workload.start(queue, books), Broker.Broker, one)
        const faults = ask(world)
        const publish = world.send(one, queue, books.published)
        // A publish whose outcome is unknown is repeated, with the same ids.
        yield* Effect.retry(publish, Schedule.spaced(100))
        yield* Books.untilEnded(books, { within: 120_000 })
        yield* world.untilEmpty(queue)
        for (const fault of faults) assert.strictEqual(fault.left(), 0, "a fault did not happen")
        const letters = [...new Set(world.idsIn(`${queue}.dlq`))]
        assert.deepStrictEqual(letters, books.published.filter(Workload.isDoomed).toSorted())
        assert.deepStrictEqual([...books.deadLettered].toSorted(), letters)
      })
    )
  )
})

test.each(["single messages", "batches"])(
  "a FIFO queue whose answers are lost and whose calls fail, %s: each group is done in order",
  (kind) =>
    on({}, (world) =>
      Effect.gen(function* () {
        const fifo = `${queue}.fifo`
        const [names, done, failed]: [ReadonlyArray<string>, Array<string>, Set<string>] = [ids(60), [], new Set()]
        const groupOf = (id: string): number => Number(id.slice(1)) % 6
        const isDone = (id: string): boolean => {
          if (Number(id.slice(1)) % 7 === 0 && !failed.has(id)) {
            failed.add(id)
            return false
          }
          if (!done.includes(id)) done.push(id)
          return true
        }
        const one = yield* world.broker()
        const batch = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 50 })
        const batches = Consumer.startBatch(fifo, { batch, concurrency: 3 }, ({ messages }) => {
          const halted = new Set<number>()
          for (const message of messages) {
            const group = groupOf(message.id)
            if (halted.has(group) || isDone(message.id)) continue
            halted.add(group)
            message.retry()
          }
        })
        const singly = world.consume(one, fifo, [], { concurrency: 10 }, ({ id }) => (isDone(id) ? Effect.void : no))
        yield* kind === "batches" ? Effect.provideService(batches, Broker.Broker, one) : singly
        world.lose("SendMessageBatch", "reset", { times: 3, every: 2 })
        world.lose("DeleteMessageBatch", "reset", { times: 4, every: 3 })
        world.lose("ReceiveMessage", "reset", { times: 2, every: 5 })
        world.failEntries("DeleteMessageBatch", "InternalFailure", [0, 1], { times: 3, every: 4 })
        world.failEntries("ChangeMessageVisibilityBatch", "InternalFailure", [0, 1], { times: 3 })
        world.fail("DeleteMessageBatch", "RequestThrottled", { times: 6, every: 5 })
        for (const id of names) {
          const headers = { "message-group-id": `group-${groupOf(id)}` }
          yield* Effect.retry(world.send(one, fifo, [id], { headers }), Schedule.spaced(100))
        }
        yield* until("all of them", () => done.length === names.length)
        yield* world.untilEmpty(fifo)
        assert.strictEqual(failed.size, 9)
        for (const group of [0, 1, 2, 3, 4, 5]) {
          const mine = (all: ReadonlyArray<string>) => all.filter((id) => groupOf(id) === group)
          assert.deepStrictEqual(mine(done), mine(names))
        }
        assert.deepStrictEqual(world.idsIn(`${fifo}.dlq`), [])
      })
    )
)

test("duplicates: each message is settled, whichever of its deliveries comes first", () => {
  let left = 50
  return on({ happens: (what) => what === "repeat" && left-- > 0 }, (world) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* world.broker()
      yield* world.consume(one, queue, runs, { concurrency: 20 }, () => Effect.sleep(50))
      yield* world.send(one, queue, ids(100))
      yield* until("all", () => new Set(runs.map(({ id }) => id)).size === 100)
      yield* world.untilEmpty(queue)
      assert.isBelow(left, 40, "few duplicates: the test shows nothing")
      assert.deepStrictEqual(world.idsIn(`${queue}.dlq`), [])
    })
  )
})
