/** What the end of a consumer costs: its own time, and that of the messages which it leaves. */
import { BatchPolicy, Consumer } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { measured } from "./lateness.ts"
import { strict } from "./strict.ts"
import { consume, has, on, outgoing, queueName, until, urlOf, type Run } from "../real/world.ts"

const { another, behind, url } = await strict()

/** A consumer that ends before its broker does. */
const scoped = <A, E, R>(start: Effect.Effect<A, E, R | Scope.Scope>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Scope.provide(start, scope)
    return Scope.close(scope, Exit.void)
  })

const idle = (queue: string) => Consumer.start(queue, { concurrency: 5 }, () => {})

/** Long polls as they are by default. */
const long = { waitTime: 20_000 }

describe.concurrent("the end of an idle consumer", () => {
  test("takes less than a second, with its broker", async (context) => {
    await using own = await another()
    await measured(context, { url }, () =>
      Effect.promise(async () => {
        const before = own.calls()["ReceiveMessage"] ?? 0
        let from = 0
        await on({ url: own.url, ...long }, () =>
          Effect.gen(function* () {
            yield* idle(queueName("idle"))
            yield* until("its poll", () => (own.calls()["ReceiveMessage"] ?? 0) > before)
            from = Date.now()
          })
        )
        const at = Date.now()
        return [{ what: "the end", late: at - from, bound: 1000, from, at }]
      })
    )
  })

  test("gives back what its poll still brings, so that a message is hidden from nobody", async () => {
    await using own = await another()
    const queue = queueName("left")
    const runs: Array<Run> = []
    await on({ url: own.url, ...long }, (broker) =>
      Effect.gen(function* () {
        const close = yield* scoped(idle(queue))
        yield* until("its poll", () => (own.calls()["ReceiveMessage"] ?? 0) > 0)
        yield* close
        yield* broker.publish([outgoing(queue, "m1")])
        yield* until("given back", () => (own.calls()["ChangeMessageVisibilityBatch"] ?? 0) > 1)
        yield* until("visible", () => has(behind, queue, 1, 0, 0))
        yield* consume(queue, runs)
        yield* until("handled", () => runs.length > 0)
      })
    )
    // The broker knows that no handler saw it the first time.
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1]
    )
  })

  test("waits for a poll that ends within a second: SQS would go on with it, and hide what it finds", async () => {
    await using own = await another()
    const queue = queueName("short")
    await on({ url: own.url, waitTime: 1000 }, () =>
      Effect.gen(function* () {
        yield* idle(queue)
        yield* until("its poll", () => (own.calls()["ReceiveMessage"] ?? 0) > 0)
      })
    )
    const QueueUrl = await urlOf(behind, queue)
    await behind.sendMessage({ QueueUrl, MessageBody: "m" })
    const { Messages = [] } = await behind.receiveMessage({ QueueUrl, WaitTimeSeconds: 2 })
    assert.strictEqual(Messages.length, 1)
  })
})

test.concurrent("what a consumer gives back to a FIFO queue comes back at once, though its own poll receives it", async () => {
  await using own = await another()
  const queue = `${queueName("again")}.fifo`
  await on({ url: own.url, visibilityTimeout: 3600_000, ...long }, (broker) =>
    Effect.gen(function* () {
      const batch = BatchPolicy.make({ maxBatchSize: 100, maxBatchTimeout: "1 minute" })
      const scope = yield* Scope.make()
      const consumer = yield* Scope.provide(
        Consumer.startBatch(queue, { batch }, () => {}),
        scope
      )
      const groups = Array.from({ length: 9 }, (_, index) => `g${index}`)
      yield* broker.publish(groups.map((group) => outgoing(queue, group, { headers: { "message-group-id": group } })))
      yield* until("nine that wait", () => consumer.stats().buffered === 9)
      const before = own.calls()["ReceiveMessage"] ?? 0
      yield* until("its poll", () => (own.calls()["ReceiveMessage"] ?? 0) >= Math.max(before, 2))
      yield* Scope.close(scope, Exit.void)
    })
  )
  // The connection is closed, and its last poll with it.
  assert.isTrue(await has(behind, queue, 9, 0, 0))
})

/** Milliseconds that a test gives to settlements, and that SQS has at the end. */
const [drainTimeout, lastGrace] = [300, 2000]

describe.concurrent("the end of a consumer, when SQS gives no answer", () => {
  test.each<[name: string, action: string | undefined, kind: string]>([
    ["to any call", undefined, ""],
    ["to any call", undefined, ".fifo"],
    ["to deletes", "DeleteMessageBatch", ""],
    ["to changes of visibility", "ChangeMessageVisibilityBatch", ""]
  ])("%s: it takes the time of a drain, and two seconds", async (_, action, kind) => {
    await using own = await another()
    const queue = `${queueName("silent")}${kind}`
    await on({ url: own.url, visibilityTimeout: 3600_000, ...long }, (broker) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const close = yield* scoped(
          Consumer.start(queue, { concurrency: 2, prefetch: 8, drainTimeout }, () =>
            Effect.andThen(Deferred.succeed(begun, undefined), Effect.sleep(100))
          )
        )
        yield* broker.publish(["m1", "m2", "m3"].map((id) => outgoing(queue, id)))
        yield* Deferred.await(begun)
        own.ignore({ times: 1000, ...(action === undefined ? {} : { action }) })
        const [took] = yield* Effect.timed(close)
        // A drain ends after its time and a second.
        assert.isBelow(Duration.toMillis(took), drainTimeout + 1000 + lastGrace + 700)
      })
    )
  })

  test("no call goes on when the connection has been closed: its process ends", async () => {
    await using own = await another()
    const queue = queueName("cut")
    const calls = () => Object.values(own.calls()).reduce((all, count) => all + count, 0)
    let sent: Promise<unknown> = Promise.resolve()
    await on({ url: own.url, requestTimeout: 1000 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "m1")])
        own.ignore({ times: 1000 })
        const before = calls()
        sent = Effect.runPromise(Effect.flip(broker.publish([outgoing(queue, "m2")])))
        yield* until("the call", () => calls() > before)
      })
    )
    const after = calls()
    assert.match(String(await sent), /Timeout: .*the connection has been closed/)
    assert.strictEqual(calls(), after)
  })
})

test.concurrent("what a consumer gives back at its end is not received by the poll that it leaves", async () => {
  await using own = await another()
  const queue = queueName("back")
  const receives: Array<string | undefined> = []
  const receiveBoth = async () => {
    const QueueUrl = await urlOf(behind, queue)
    while (receives.length < 2) {
      const { Messages = [] } = await behind.receiveMessage({
        QueueUrl,
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 1,
        VisibilityTimeout: 60,
        MessageSystemAttributeNames: ["All"]
      })
      receives.push(...Messages.map(({ Attributes }) => Attributes?.ApproximateReceiveCount))
    }
  }
  const polls = () => own.calls()["ReceiveMessage"] ?? 0
  await on({ url: own.url, waitTime: 5000 }, (broker) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const close = yield* scoped(
        Consumer.start(queue, { concurrency: 1, prefetch: 9, drainTimeout: 0 }, () =>
          Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
        )
      )
      yield* broker.publish([outgoing(queue, "m1"), outgoing(queue, "m2")])
      yield* Deferred.await(begun)
      yield* until("both", () => has(behind, queue, 0, 2, 0))
      const before = polls()
      yield* until("a poll for more", () => polls() > before || before > 2)
      yield* close
      yield* Effect.promise(receiveBoth)
    })
  )
  assert.deepStrictEqual(receives, ["2", "2"])
})
