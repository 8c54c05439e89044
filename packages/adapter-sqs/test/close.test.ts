/** What the end of a consumer costs: its own time, and that of the messages which it leaves. */
import { Consumer } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { measured } from "./lateness.ts"
import { strict } from "./strict.ts"
import { consume, has, on, outgoing, queueName, until, urlOf, type Run } from "./world.ts"

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
