/** What operators leave behind: others have every letter again when a call ends, however it ends. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, test } from "vitest"
import { strict } from "./strict.ts"
import { has, ids, on, outgoing, publishAll, queueName, until } from "../real/world.ts"

const { another, behind, url } = await strict()

/** Long polls as they are by default. */
const long = { waitTime: 20_000 }

test("what a purge with a filter passed over is visible at its end, however long polls are", async () => {
  const queue = queueName("passed")
  await on({ url, ...long }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(12))
      const letters = yield* DeadLetters.make(queue)
      const removed = yield* letters.purge({
        filter: ({ metadata }) => metadata.id === ids(12)[3],
        force: queue
      })
      assert.strictEqual(removed, 1)
      assert.isTrue(yield* Effect.promise(() => has(behind, queue, 11, 0, 0)))
    })
  )
})

test("a browser that is interrupted returns what its receives under way still bring", async () => {
  await using own = await another()
  const queue = queueName("under-way")
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(10))
      const receives = () => own.calls()["ReceiveMessage"] ?? 0
      const begun = receives()
      const browsing = Effect.scoped(
        Effect.gen(function* () {
          const browser = yield* broker.admin.browse({ queue, from: "ready", limit: 100 })
          const next = browser.next(100)
          while (true) yield* next
        })
      )
      const fiber = yield* Effect.forkChild(browsing, { startImmediately: true })
      yield* until("a second page", () => receives() > begun + 1)
      // It comes to a receive that nobody waits for any more.
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* broker.publish([outgoing(queue, "late")])
      yield* Fiber.join(interrupted)
      assert.isTrue(yield* Effect.promise(() => has(behind, queue, 11, 0, 0)))
    })
  )
})

test("a purge that cannot delete gives back what it has received", async () => {
  await using own = await another()
  const queue = queueName("kept")
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(30))
      own.deny(["DeleteMessage"])
      assert.strictEqual((yield* Effect.flip(broker.admin.purge(queue))).reason, "AccessRefused")
      assert.isTrue(yield* Effect.promise(() => has(behind, queue, 30, 0, 0)))
    })
  )
})
