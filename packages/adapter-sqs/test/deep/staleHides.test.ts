/**
 * Calls that change visibility, and arrive twice or too late: on a standard queue an old receipt handle works on, so that they
 * would take a message from whoever has it by then.
 */
import { Broker, Consumer, type Delivery, type Event, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import type { StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { drain, has, idOf, left, on, outgoing, queueName, until, urlOf } from "../real/world.ts"

const { another, behind } = await strict()

const calls = (own: StrictSqs): number => own.calls()["ChangeMessageVisibilityBatch"] ?? 0

/** A delivery, and how often visibility was changed since it came. */
const received = async (
  visibilityTimeout: number,
  program: (world: {
    readonly own: StrictSqs
    readonly queue: string
    readonly asked: () => number
    readonly settle: (settlement: Settlement.Settlement) => Effect.Effect<ReadonlyArray<string>>
    readonly extend: Effect.Effect<ReadonlyArray<string>>
    /** Somebody else receives it. */
    readonly taken: Effect.Effect<void, unknown>
    /** Its lease has ended by the clock of this process, too. */
    readonly over: Effect.Effect<void, unknown>
  }) => Effect.Effect<void, unknown>
) => {
  await using own = await another()
  const queue = queueName("stale")
  await on({ url: own.url, visibilityTimeout, requestTimeout: 3000 }, (broker) =>
    Effect.gen(function* () {
      const deliveries: Array<Delivery.Delivery> = []
      const subscription = yield* (yield* Broker.Broker).subscribe({
        queue,
        retry: RetryPolicy.make(),
        deadLetterQueues: [],
        onDelivery: (delivery) => void deliveries.push(delivery),
        onReconnect: () => {}
      })
      subscription.credit(1)
      yield* broker.publish([outgoing(queue, "a")])
      yield* until("the delivery", () => deliveries.length === 1)
      subscription.credit(0)
      const ends = performance.now() + visibilityTimeout
      const [delivery] = deliveries
      const before = calls(own)
      const told = (failures: ReadonlyArray<Broker.SettleFailure>) =>
        failures.map(({ error, fate }) => `${fate} ${error.reason}`)
      const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
      const VisibilityTimeout = 600
      yield* program({
        own,
        queue,
        asked: () => calls(own) - before,
        settle: (settlement) => Effect.map(subscription.settle([{ delivery: delivery!, settlement }]), told),
        extend: Effect.map(subscription.extend([delivery!]), told),
        taken: until("the message", async () => {
          const { Messages = [] } = await behind.receiveMessage({ QueueUrl, VisibilityTimeout, WaitTimeSeconds: 1 })
          return Messages.length === 1
        }),
        over: until("the end of the lease", () => performance.now() > ends)
      })
    })
  )
}

describe.concurrent("a call that hides a message", () => {
  test.each([
    ["silence", "Timeout"],
    ["reset", "ConnectionLost"]
  ] as const)("and gets no answer (%s) is not repeated", (how, reason) =>
    received(600_000, ({ asked, own, queue, settle }) =>
      Effect.gen(function* () {
        own.lose({ action: "ChangeMessageVisibilityBatch" }, how)
        assert.deepStrictEqual(yield* settle(Settlement.Retry(60_000)), [`unknown ${reason}`])
        assert.strictEqual(asked(), 1)
        // Asked for again, the retry is a copy, which is due at its own time.
        assert.deepStrictEqual(yield* settle(Settlement.Retry(60_000)), [])
        assert.strictEqual(asked(), 1)
        yield* until("the copy alone", () => has(behind, queue, 0, 0, 1))
      })
    )
  )

  test("is repeated where SQS says that it has done nothing", () =>
    received(600_000, ({ asked, own, queue, settle }) =>
      Effect.gen(function* () {
        own.fail({ action: "ChangeMessageVisibilityBatch", times: 2 })
        assert.deepStrictEqual(yield* settle(Settlement.Retry(60_000)), [])
        assert.strictEqual(asked(), 3)
        yield* until("the message to wait", () => has(behind, queue, 0, 1, 0))
      })
    ))

  test("and may have given it back does not take it from whoever has it", () =>
    received(600_000, ({ asked, own, queue, settle, taken }) =>
      Effect.gen(function* () {
        own.lose({ action: "ChangeMessageVisibilityBatch" })
        assert.deepStrictEqual(yield* settle(Settlement.Release()), ["unknown Timeout"])
        yield* taken
        assert.deepStrictEqual(yield* settle(Settlement.Release()), [])
        assert.strictEqual(asked(), 1)
        yield* until("the message with its receiver", () => has(behind, queue, 0, 1, 0))
      })
    ))
})

test.concurrent("an extension that arrives after the end of the lease extends nothing", () =>
  received(2000, ({ extend, over, own, settle, taken }) =>
    Effect.gen(function* () {
      const held = own.hold({ action: "ChangeMessageVisibilityBatch" })
      const [told] = yield* Effect.all(
        [extend, Effect.ensuring(Effect.andThen(taken, over), Effect.sync(held.release))],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(told, ["lost LeaseLost"])
      assert.deepStrictEqual(yield* settle(Settlement.Retry(0)), ["lost LeaseLost"])
    })
  ))

test.concurrent("a handler that never ends has its message no more often than the policy says, however often it is shut down", async () => {
  await using own = await another()
  const queue = queueName("endless")
  const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 3 })
  let runs = 0
  await on({ url: own.url }, (broker) =>
    Effect.andThen(Effect.scoped(Consumer.start(queue, { retry }, () => {})), broker.publish([outgoing(queue, "a")]))
  )
  for (let start = 0; start < 6 && (await left(behind, queue)) > 0; start++) {
    let isOver = false
    const onEvent = ({ _tag }: Event.Event): void => void (isOver ||= _tag === "DeadLettered")
    await on({ url: own.url }, () =>
      Effect.gen(function* () {
        const before = runs
        yield* Consumer.start(queue, { retry, onEvent, drainTimeout: 0 }, () => {
          runs++
          return Effect.never
        })
        yield* until("a run, or the end", () => runs > before || isOver)
      })
    )
  }
  assert.strictEqual(runs, 3)
  assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["a"])
})
