/** What the end of a consumer costs: its own time, and that of the messages that it leaves. */
import { BatchPolicy, Broker, Consumer, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { hour, on, type Run, second, until } from "./world.ts"

const queue = "orders"

/** A consumer that ends before its broker does; returns how to end it. */
const scoped = <A, E>(start: Effect.Effect<A, E, Broker.Broker | Scope.Scope>, broker: Broker.Service) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Scope.provide(Effect.provideService(start, Broker.Broker, broker), scope)
    return Scope.close(scope, Exit.void)
  })

const idle = Consumer.start(queue, { concurrency: 5 }, () => {})

/** Milliseconds that a test gives to settlements, and that SQS has at the end. */
const [drainTimeout, lastGrace] = [300, 2000]

/** Long polls as they are by default. */
const long = { waitTime: 20 * second }

test("the end of a consumer leaves a retry alone, although an earlier receipt of its message still works", () => {
  let repeats = false
  return on({ obeysOld: true, happens: (what) => what === "repeat" && repeats }, ({ broker, counts, port, send }) =>
    Effect.gen(function* () {
      const one = yield* broker()
      yield* send(one, queue, ["m1"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { next, settle } = yield* port(one, queue, 2)
          yield* next
          repeats = true
          const repeated = yield* next
          repeats = false
          assert.deepStrictEqual(yield* settle([repeated, Settlement.Retry(hour)]), [])
        })
      )
      assert.deepStrictEqual(counts(queue), [0, 1, 0])
    })
  )
})

describe("the end of an idle consumer", () => {
  test("takes less than a second", () =>
    on(long, ({ broker, now }) =>
      Effect.gen(function* () {
        const close = yield* scoped(idle, yield* broker())
        yield* Effect.sleep(5 * second)
        const begun = now()
        yield* close
        assert.isBelow(now() - begun, second)
      })
    ))

  test("returns what its poll still brings, so a message is hidden from no consumer, and it is no attempt", () =>
    on(long, ({ broker, consume, send, untilCounts }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        const close = yield* scoped(idle, one)
        yield* Effect.sleep(5 * second)
        yield* close
        yield* send(one, queue, ["m1"])
        yield* untilCounts(queue, 1, 0, 0)
        yield* consume(one, queue, runs)
        yield* until("handled", () => runs.length > 0)
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1]
        )
      })
    ))

  test("waits for a poll that ends within a second: SQS would go on with it, and hide what it finds", () =>
    on({}, ({ ask, broker, counts }) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.flatMap(broker(), (one) =>
            Effect.andThen(scoped(idle, one), (close) => Effect.andThen(Effect.sleep(300), close))
          )
        )
        yield* ask("SendMessageBatch", queue, { Entries: [{ Id: "0", MessageBody: "m" }] })
        yield* Effect.sleep(2 * second)
        assert.deepStrictEqual(counts(queue), [1, 0, 0])
      })
    ))
})

test("what a consumer returns to a FIFO queue comes back at once, though its own poll receives it", () =>
  on({ visibilityTimeout: hour, ...long }, ({ broker, calls, counts, send }) =>
    Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* broker()
          const batch = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: "1 minute" })
          const close = yield* scoped(
            Consumer.startBatch("orders.fifo", { batch }, () => {}),
            one
          )
          for (let index = 0; index < 9; index++)
            yield* send(one, "orders.fifo", [`g${index}`], { headers: { "message-group-id": `g${index}` } })
          yield* until("nine in flight", () => counts("orders.fifo")[1] === 9)
          const before = calls("ReceiveMessage")
          yield* until("its poll", () => calls("ReceiveMessage") >= Math.max(before, 2))
          yield* close
        })
      )
      // The connection is closed, and its last poll with it.
      assert.deepStrictEqual(counts("orders.fifo"), [9, 0, 0])
    })
  ))

test("a message whose delete has no answer is not sent again at the end: SQS may have deleted it", () =>
  on(long, ({ broker, calls, left, lose, send }) =>
    Effect.gen(function* () {
      const one = yield* broker()
      // Its next delivery would exceed the limit, and an untouched message would wait as a copy.
      const retry = RetryPolicy.make({ maxAttempts: 1, maxDeliveries: 1 })
      const close = yield* scoped(
        Consumer.start(queue, { retry, drainTimeout }, () => {}),
        one
      )
      lose("DeleteMessageBatch", "reset", { times: 1000 })
      yield* send(one, queue, ["m1"])
      yield* until("a delete", () => calls("DeleteMessageBatch") > 0)
      yield* close
      assert.strictEqual(left(queue), 0)
    })
  ))

test.each<[name: string, actions: ReadonlyArray<string>, name: string]>([
  [
    "to deletes and changes of visibility",
    ["DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"],
    queue
  ],
  [
    "to any call of a FIFO queue",
    ["DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"],
    "orders.fifo"
  ],
  ["to deletes", ["DeleteMessageBatch"], queue],
  ["to changes of visibility", ["ChangeMessageVisibilityBatch"], queue]
])(
  "the end of a consumer, when SQS gives no answer %s, takes the time of a drain, and two seconds",
  (_, actions, name) =>
    on({ visibilityTimeout: hour, ...long }, ({ broker, lose, now, send }) =>
      Effect.gen(function* () {
        let begun = 0
        const one = yield* broker()
        const close = yield* scoped(
          Consumer.start(name, { concurrency: 2, prefetch: 8, drainTimeout }, () =>
            Effect.suspend(() => {
              begun++
              return Effect.sleep(100)
            })
          ),
          one
        )
        yield* send(one, name, ["m1", "m2", "m3"])
        yield* until("a run", () => begun > 0)
        for (const action of actions) lose(action, "silence", { times: 1000 })
        const before = now()
        yield* close
        // A drain ends after its time and a second.
        assert.isBelow(now() - before, drainTimeout + second + lastGrace + 700)
      })
    )
)

test("what a consumer returns at its end is not received by the poll that it leaves", () =>
  on({ waitTime: 5 * second }, ({ broker, counts, messages, send, untilCounts }) =>
    Effect.gen(function* () {
      let begun = 0
      const one = yield* broker()
      const close = yield* scoped(
        Consumer.start(queue, { concurrency: 1, prefetch: 9, drainTimeout: 0 }, () => {
          begun++
          return Effect.never
        }),
        one
      )
      yield* send(one, queue, ["m1", "m2"])
      yield* until("both", () => begun === 1 && counts(queue)[1] === 2)
      yield* Effect.sleep(second)
      yield* close
      yield* untilCounts(queue, 2, 0, 0)
      yield* Effect.sleep(10 * second)
      assert.deepStrictEqual(
        messages(queue).map(({ receives }) => receives),
        [1, 1]
      )
    })
  ))
