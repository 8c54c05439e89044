/** What a message costs: API calls, as the proxy in front of SQS counts them. */
import { BatchPolicy, type Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { measured } from "./lateness.ts"
import { strict } from "./strict.ts"
import { ids, on, outgoing, queueName, until, untilEmpty } from "../real/world.ts"

const { another, behind } = await strict()

const count = 1000

/** Milliseconds from one batch to the next. */
const steps = 50

/** 400 messages a second, in batches of 20. */
const steady = (broker: Broker.Service, queue: string) =>
  Effect.gen(function* () {
    const names = ids(count)
    for (let from = 0; from < count; from += 20) {
      yield* broker.publish(names.slice(from, from + 20).map((id) => outgoing(queue, id)))
      yield* Effect.sleep(steps)
    }
  })

const handle = Effect.sleep(5)

describe(`${count} messages at a steady 400 a second: at most 0.25 calls each to receive and delete them`, () => {
  test.for<[name: string, consume: (queue: string, seen: () => void) => ReturnType<typeof Consumer.start<unknown>>]>([
    [
      "in batches of 10",
      (queue, seen) =>
        Consumer.startBatch(
          queue,
          { batch: BatchPolicy.make({ maxBatchSize: 10 }), concurrency: 4 },
          ({ messages }) => {
            messages.forEach(seen)
            return handle
          }
        )
    ],
    [
      "in batches of 100",
      (queue, seen) =>
        Consumer.startBatch(queue, { batch: BatchPolicy.make({ maxBatchSize: 100 }) }, ({ messages }) => {
          messages.forEach(seen)
          return handle
        })
    ],
    [
      "one by one, 20 at a time",
      (queue, seen) =>
        Consumer.start(queue, { concurrency: 20 }, () => {
          seen()
          return handle
        })
    ]
  ])("%s", async ([name, consume], context) => {
    // The control has a proxy to itself: its calls are not counted.
    await using own = await another()
    await measured(context, { url: own.url }, () =>
      Effect.promise(async () => {
        await using counted = await another()
        const spent = (action: string): number => counted.calls()[action] ?? 0
        const queue = queueName("calls")
        let seen = 0
        const from = Date.now()
        await on({ url: counted.url }, (broker) =>
          Effect.gen(function* () {
            yield* consume(queue, () => seen++)
            yield* steady(broker, queue)
            yield* until("all of them", () => seen >= count)
            yield* untilEmpty(behind, queue)
          })
        )
        const [received, deleted] = [spent("ReceiveMessage"), spent("DeleteMessageBatch")]
        const each = (received + deleted) / count
        const what = `${name}: ${received} receives, ${deleted} deletes, ${each.toFixed(3)} calls a message`
        console.log(what)
        assert.strictEqual(seen, count)
        const others = spent("DeleteMessage") + spent("ChangeMessageVisibilityBatch")
        // A consumer asks once whether it may hide. Where the machine does not keep up, leases are extended as well.
        const late = each <= 0.25 && others === 1 ? 0 : Number.POSITIVE_INFINITY
        return [{ what: `${what}, ${others} others`, late, bound: steps, from, at: Date.now() }]
      })
    )
  })
})

/** Receives and deletes of one message, at most. */
type Row = readonly [concurrency: number, fifo: boolean, prefetch: number | undefined, bound: number]

// With prefetch 0 and concurrency 1, each message is deleted before the next one is received: SQS has no call for both.
// A FIFO queue whose retries block receives one message a call.
const rows: ReadonlyArray<Row> = [
  [1, false, 0, 2],
  [1, false, undefined, 1.1],
  [1, false, 9, 0.6],
  [10, false, 0, 0.6],
  [10, false, undefined, 0.6],
  [100, false, 0, 0.3],
  [100, false, undefined, 0.3],
  [1, true, 0, 2],
  [1, true, undefined, 2],
  [10, true, 0, 1.5],
  [10, true, undefined, 1.5],
  [100, true, 0, 1.5],
  [100, true, undefined, 1.5]
]

describe("messages that wait already: calls each to receive and delete them", () => {
  test.for(rows)(
    "concurrency %i, FIFO %s, prefetch %s: at most %d",
    async ([concurrency, fifo, prefetch, bound], context) => {
      const many = Math.max(40, 6 * concurrency)
      await using own = await another()
      await measured(context, { url: own.url }, () =>
        Effect.promise(async () => {
          await using counted = await another()
          const spent = (action: string): number => counted.calls()[action] ?? 0
          const queue = `${queueName("calls")}${fifo ? ".fifo" : ""}`
          let [seen, received] = [0, 0]
          const from = Date.now()
          await on({ url: counted.url }, (broker) =>
            Effect.gen(function* () {
              const message = (id: string) => outgoing(queue, id, fifo ? { headers: { "message-group-id": id } } : {})
              yield* broker.publish(ids(many).map(message))
              yield* Consumer.start(queue, { concurrency, ...(prefetch === undefined ? {} : { prefetch }) }, () => {
                // Polls that come after the last message find nothing.
                if (++seen === many) received = spent("ReceiveMessage")
                return handle
              })
              yield* until("all of them", () => seen >= many)
              yield* untilEmpty(behind, queue)
            })
          )
          const deleted = spent("DeleteMessageBatch")
          const each = (received + deleted) / many
          const what = `${received} receives, ${deleted} deletes, ${each.toFixed(2)} calls a message`
          console.log(`concurrency ${concurrency}, FIFO ${fifo}, prefetch ${prefetch ?? "default"}: ${what}`)
          assert.strictEqual(seen, many)
          const late = each <= bound + 1 / many ? 0 : Number.POSITIVE_INFINITY
          return [{ what, late, bound: 50, from, at: Date.now() }]
        })
      )
    }
  )
})

test("an idle consumer calls once for each long poll", async () => {
  await using own = await another()
  const queue = queueName("idle")
  const polls = () => own.calls()["ReceiveMessage"] ?? 0
  await on({ url: own.url, waitTime: 2000 }, () =>
    Effect.gen(function* () {
      yield* Consumer.start(queue, { concurrency: 50 }, () => {})
      yield* until("the first poll", () => polls() > 0)
      const [before, began] = [polls(), performance.now()]
      yield* until("three polls more", () => polls() >= before + 3)
      // Whenever that was seen, two of them have ended; the server's own timer may be early by its last millisecond.
      assert.isAtLeast(performance.now() - began, 2 * 2000 - 10)
    })
  )
})
