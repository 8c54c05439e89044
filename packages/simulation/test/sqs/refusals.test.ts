/** SQS refuses calls for a while: what is run, what is kept, and what consumers report. */
import { Broker, Health, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { hour, ids, minute, no, on, type Run, tagged, until, type World } from "./world.ts"

const queue = "orders"

test("entries that fail for a moment are asked again: none is lost, none is reported as failed", () =>
  on({}, ({ broker, consume, failEntries, send, untilEmpty }) =>
    Effect.gen(function* () {
      const [runs, { count, onEvent }] = [[] as Array<Run>, tagged()]
      const one = yield* broker()
      const faults = ["SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"].map((action) =>
        failEntries(action, "InternalFailure", [0, 1, 2], { times: 2, queues: [queue] })
      )
      yield* send(one, queue, ids(40))
      yield* consume(one, queue, runs, { onEvent, concurrency: 20, retryDelay: 1000 }, ({ attempts }) =>
        attempts === 1 ? no : Effect.void
      )
      yield* until("all", () => count("Succeeded") === 40)
      yield* untilEmpty(queue)
      for (const fault of faults) assert.strictEqual(fault.left(), 0)
      assert.deepStrictEqual([count("SettleFailed"), count("LeaseLost"), count("RetryScheduled")], [0, 0, 40])
      assert.strictEqual(runs.length, 80)
    })
  ))

test("a message whose dead letter is refused is run as often as its policy says, and then moved by SQS", () =>
  on({}, ({ broker, consume, idsIn, left, send, server }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1 })
      yield* send(yield* broker(), queue, ["a"])
      server.deny(["SendMessage"], `${queue}-dlq`)
      // SQS moves a message after 2 x maxDeliveries + 5 receives of this copy.
      for (let start = 0; start < 8 && left(queue) > 0; start++) {
        const { count, onEvent } = tagged()
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* consume(yield* broker(), queue, runs, { retry, onEvent }, () => no)
            yield* until("a refusal, or the end", () => count("SettleFailed") > 0 || left(queue) === 0)
          })
        )
      }
      assert.deepStrictEqual([runs.length, left(queue)], [1, 0])
      assert.deepStrictEqual(idsIn(`${queue}.dlq`), ["a"])
    })
  ))

test.each<[name: string, begin: (world: World) => unknown]>([
  ["never answers", ({ lose }) => lose("ChangeMessageVisibilityBatch", "silence", { times: 1e6 })],
  ["throttles", ({ fail }) => fail("ChangeMessageVisibilityBatch", "RequestThrottled", { times: 1e6 })]
])("a retry that SQS %s keeps its delay when its consumer stops", (_, begin) =>
  on({ visibilityTimeout: 10 * minute }, (world) =>
    Effect.gen(function* () {
      const { broker, consume, counts, left, send } = world
      const [runs, { count, onEvent }] = [[] as Array<Run>, tagged()]
      yield* Effect.scoped(
        Effect.gen(function* () {
          const one = yield* broker()
          yield* consume(one, queue, runs, { onEvent }, (message) => {
            begin(world)
            message.retry({ delay: hour })
          })
          yield* send(one, queue, ["a"])
          yield* until("the event", () => count("SettleFailed") > 0)
        })
      )
      assert.deepStrictEqual([counts(queue)[0], left(queue), runs.length], [0, 1, 1])
    })
  )
)

test("a handler that never ends has its message no more often than the policy says, however often it is shut down", () =>
  on({}, ({ broker, consume, idsIn, left, send }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 3 })
      yield* send(yield* broker(), queue, ["a"])
      for (let start = 0; start < 6 && left(queue) > 0; start++) {
        const [{ count, onEvent }, before] = [tagged(), runs.length]
        yield* Effect.scoped(
          Effect.gen(function* () {
            const options = { retry, onEvent, drainTimeout: 0 }
            yield* consume(yield* broker(), queue, runs, options, () => Effect.never)
            yield* until("a run, or the end", () => runs.length > before || count("DeadLettered") > 0)
          })
        )
      }
      assert.strictEqual(runs.length, 3)
      assert.deepStrictEqual(idsIn(`${queue}.dlq`), ["a"])
    })
  ))

describe("a consumer is down, says why, and goes on, where", () => {
  const all = ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "GetQueueAttributes"]
  const forEver = { times: Number.POSITIVE_INFINITY }
  test.each<[name: string, because: RegExp, ask: (world: World) => { readonly end: () => void }]>([
    [
      "every call answers 500",
      /InternalFailure/,
      ({ fail }) => fail("ReceiveMessage", "InternalFailure", { ...forEver, actions: all })
    ],
    [
      "every call answers 503",
      /ServiceUnavailable/,
      ({ fail }) => fail("ReceiveMessage", "ServiceUnavailable", { ...forEver, actions: all })
    ],
    [
      "receives are throttled",
      /ThrottlingException/,
      ({ fail }) => fail("ReceiveMessage", "ThrottlingException", forEver)
    ],
    [
      "receives need a key that is disabled",
      /KmsDisabled/,
      ({ fail }) => fail("ReceiveMessage", "KmsDisabled", forEver)
    ],
    ["receives get no answer", /Timeout/, ({ lose }) => lose("ReceiveMessage", "silence", forEver)]
  ])("%s", (_, because, ask) =>
    on({}, (world) =>
      Effect.gen(function* () {
        const { broker, consume, send } = world
        const runs: Array<Run> = []
        const one = yield* broker()
        const consumer = yield* consume(one, queue, runs)
        const fault = ask(world)
        yield* until("down", () => consumer.health().state === "down")
        const checked = Effect.provideService(Health.check([consumer]), Broker.Broker, one)
        const health = yield* checked
        assert.match(health.consumers[0]!.trouble!.because, because)
        assert.deepStrictEqual([Health.isReady(health), Health.isLive(health)], [false, true])
        fault.end()
        yield* until("running", () => consumer.health().state === "running")
        yield* send(one, queue, ["m1"])
        yield* until("handled", () => runs.some(({ id }) => id === "m1"))
        assert.isTrue(Health.isReady(yield* checked))
      })
    )
  )

  test("no permission to settle is left: nothing runs again and again", () =>
    on({}, ({ broker, consume, send, server, untilEmpty }) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* broker()
        const consumer = yield* consume(one, queue, runs)
        server.deny(["DeleteMessage"])
        yield* send(one, queue, ids(3))
        yield* until("down", () => consumer.health().state === "down")
        yield* Effect.sleep(10 * minute)
        assert.isAtMost(runs.length, 3)
        server.deny([])
        yield* until("running", () => consumer.health().state === "running")
        yield* untilEmpty(queue)
        assert.deepStrictEqual([runs.length, new Set(runs.map(({ id }) => id)).size], [3, 3])
      })
    ))
})

test("one failure of a moment is no trouble", () =>
  on({}, ({ broker, calls, consume, fail }) =>
    Effect.gen(function* () {
      const consumer = yield* consume(yield* broker(), queue, [])
      // The SDK makes three attempts of a call.
      const fault = fail("ReceiveMessage", "InternalFailure", { times: 3 })
      const seen = new Set<string>()
      yield* until("over", () => {
        seen.add(consumer.health().state)
        return fault.left() === 0 && calls("ReceiveMessage") > 6
      })
      assert.deepStrictEqual([...seen], ["running"])
    })
  ))
