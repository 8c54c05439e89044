/** A quorum queue whose leader does not answer: the server tells that it is empty, and nobody is told so. */
import type { Broker } from "@requeue/core"
import { DeadLetters, DelayedMessages } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, test } from "vitest"
import { apart, shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { browse, ids, on, outgoing, queueName } from "../world.ts"

const one = await shared()
const { url } = one
const [node] = one.broker.nodes

const tell = (to: "suspend" | "resume", queue: string) =>
  Effect.promise(() => node!.ctl("eval", `sys:${to}('%2F_${queue}').`))

/** Lets the leader of a queue answer nothing. Other nodes of its test are other queues. */
const silent = <A, E, R>(queue: string, during: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    tell("suspend", queue),
    () => during,
    () => tell("resume", queue)
  )

/** Begins something while the leader is silent; it is over when the leader answers again. */
const across = <A, E, R>(queue: string, ask: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    silent(
      queue,
      Effect.gen(function* () {
        const asking = yield* Effect.forkChild(ask, { startImmediately: true })
        yield* Effect.sleep("1 second")
        assert.isUndefined(asking.pollUnsafe(), "something was told")
        return asking
      })
    ),
    Fiber.join
  )

const letters = ids(20)

const filled = (broker: Broker.Service, base: string) => {
  const queue = queueName(base)
  return Effect.as(broker.publish(letters.map((id) => outgoing(queue, id))), queue)
}

test.runIf(node !== undefined)("letters are counted and shown when their leader answers", { timeout: 60_000 }, () =>
  on({ url, queueType: "quorum" }, (broker) =>
    Effect.gen(function* () {
      const queue = yield* filled(broker, "silent")
      assert.strictEqual((yield* across(queue, broker.admin.counts(queue))).ready, letters.length)
      const seen = yield* across(queue, browse(broker, queue, 100))
      assert.strictEqual(seen.length, letters.length)
      const dead = yield* DeadLetters.make(queue)
      const { browsed, total } = yield* across(queue, dead.group())
      assert.deepStrictEqual([browsed, total], [letters.length, letters.length])
    })
  )
)

test.runIf(node !== undefined)("delayed messages are listed when their leader answers", { timeout: 60_000 }, () =>
  on({ url, queueType: "quorum", topology: "perMessageTtl", prefix: queueName("p") }, (broker) =>
    Effect.gen(function* () {
      const queue = queueName("delayed")
      yield* broker.publish(letters.map((id) => outgoing(queue, id, { delay: 600_000 })))
      const { count } = yield* DelayedMessages.make(queue)
      const told = { selected: letters.length, browsed: letters.length, isWhole: true }
      assert.deepStrictEqual(yield* count(), told)
      assert.deepStrictEqual(yield* across(`${queue}.retry`, count()), told)
    })
  )
)

test.runIf(node !== undefined)("a leader that stays silent is an error of its queue alone", { timeout: 60_000 }, () =>
  on({ url, queueType: "quorum", requestTimeout: 1500 }, (broker) =>
    Effect.gen(function* () {
      const queue = yield* filled(broker, "silent")
      const others = yield* Effect.forEach(ids(8), () => filled(broker, "other"))
      const missing = ids(8).map(() => queueName("missing"))
      const all = [queue, ...others.flatMap((name, at) => [name, missing[at]!])]
      const counts = yield* silent(
        queue,
        Effect.forEach(all, (name) => Effect.result(broker.admin.counts(name)), { concurrency: "unbounded" })
      )
      const [told, ...rest] = counts
      const reason = told?._tag === "Failure" ? told.failure.reason : undefined
      assert.strictEqual(reason, "Timeout")
      const readies = rest.map((each) =>
        each._tag === "Success" ? [each.success.ready, each.success.isMissing] : each
      )
      assert.deepStrictEqual(
        readies,
        others.flatMap(() => [
          [letters.length, undefined],
          [0, true]
        ])
      )
    })
  )
)

test("an empty queue is told as empty over a line that is slower than any leader", { timeout: 60_000 }, async () => {
  const queue = queueName("far")
  await raw(url, (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const { proxied, proxy } = yield* apart(one)
        const program = (broker: Broker.Service) =>
          Effect.gen(function* () {
            proxy.delay(150)
            assert.deepInclude(yield* broker.admin.counts(queue), { ready: 0 })
            proxy.delay(0)
          })
        yield* Effect.promise(() => on({ url: proxied, queueType: "quorum" }, program))
      })
    )
  )
})
