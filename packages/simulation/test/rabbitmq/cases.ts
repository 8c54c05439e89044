/** Cases of what only the RabbitMQ adapter has. */
import { RabbitMqNative, type RabbitMqOptions } from "@requeue/adapter-rabbitmq"
import { type Case, Check, Wait } from "@requeue/conformance"
import { Backoff, type BrokerError, Consumer, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Limits from "./limits.ts"
import * as Returned from "./returned.ts"
import { test } from "./Own.ts"

const reasonOf = (result: Result.Result<void, BrokerError.BrokerError>) =>
  Result.isSuccess(result) ? "sent" : result.failure.reason

/** Starts a consumer that fails each message; returns the times of its runs. */
const failing = (queue: string, delay: number) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const runs: Array<number> = []
    yield* Consumer.start<string>(
      queue,
      { retry: RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant(delay) }) },
      () => {
        runs.push(clock.currentTimeMillisUnsafe())
        return Effect.fail(new Error("no"))
      }
    )
    return runs
  })

/** Fails twice by the policy, once with a delay of the handler's own, and then for good, in this topology. */
const life = (topology: RabbitMqOptions.Options["topology"], options: RabbitMqOptions.Options = {}) =>
  test(
    `a life through ${topology}, ${options.queueType ?? "quorum"}`,
    [{}, { topology, ...options }],
    ({ send, server }) =>
      Effect.gen(function* () {
        const clock = yield* Clock.Clock
        const now = () => clock.currentTimeMillisUnsafe()
        const runs: Array<{ readonly attempts: number; readonly at: number }> = []
        const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.linear(500) })
        yield* Consumer.start<string>("orders", { retry }, (message) => {
          runs.push({ attempts: message.attempts, at: now() })
          return message.attempts === 3 ? message.retry({ delay: 730 }) : Effect.fail(new Error("no"))
        })
        const begun = now()
        yield* send("orders", "a", { delay: 600 })
        const letters = () => server.vhost.queues.get("orders.dlq")?.counts.ready
        yield* Wait.until("the dead letter", () => letters() === 1)
        Check.equal(
          "attempts",
          runs.map(({ attempts }) => attempts),
          [1, 2, 3, 4]
        )
        const waits = runs.map(({ at }, index) => at - (runs[index - 1]?.at ?? begun))
        const early = [600, 500, 1000, 730].filter((delay, index) => waits[index]! < delay)
        Check.equal("early", early, [])
      })
  )

/** Bytes of a header that is larger than a small frame. */
const large = 9000

export const cases: ReadonlyArray<Case.Case> = [
  test("equal messages that are all returned all fail", [{}, {}], ({ send }) =>
    Effect.gen(function* () {
      const native = RabbitMqNative.make({ exchange: "amq.fanout" })
      const sends = Array.from({ length: 3 }, () => Effect.result(send("nowhere", "same", { native })))
      const results = yield* Effect.all(sends, { concurrency: "unbounded" })
      Check.equal("outcomes", results.map(reasonOf), ["Unroutable", "Unroutable", "Unroutable"])
    })
  ),
  test(
    "a delay that a policy of the server ends early is waited for",
    [{}, { management: "http://localhost:15672" }],
    ({ send, server }) =>
      Effect.gen(function* () {
        const delay = 60_000
        server.vhost.setPolicy("operator", "short", { pattern: "^requeue", definition: { "message-ttl": 500 } })
        const runs = yield* failing("orders", delay)
        yield* send("orders", "a")
        yield* Wait.until("two runs", () => runs.length === 2, 4 * delay)
        Check.isTrue("the delay has passed", runs[1]! - runs[0]! >= delay, runs[1]! - runs[0]!)
      })
  ),
  test(
    "a delay of a former version that a policy of the server ends early is waited for",
    [{}, { management: "http://localhost:15672" }],
    ({ send, server }) =>
      Effect.gen(function* () {
        const delay = 60_000
        server.vhost.setPolicy("operator", "short", { pattern: "^requeue", definition: { "message-ttl": 20_000 } })
        const former = yield* Scope.make()
        const runs = yield* Scope.provide(failing("orders", delay), former)
        yield* send("orders", "a")
        yield* Wait.until("the first run", () => runs.length === 1)
        yield* Effect.sleep("5 seconds")
        yield* Scope.close(former, Exit.void)
        const later = yield* failing("orders", 300)
        yield* Wait.until("the second run", () => later.length >= 1, 4 * delay)
        Check.isTrue("the delay has passed", later[0]! - runs[0]! >= delay, later[0]! - runs[0]!)
      })
  ),
  test(
    "headers that are larger than a frame fail their own message only",
    [{ frameMax: 8192 }, {}],
    ({ broker, send }) =>
      Effect.gen(function* () {
        yield* send("orders", "first")
        const { since } = broker.connection()
        const results = yield* Effect.all(
          [
            Effect.result(send("orders", "large", { headers: { text: "x".repeat(large) } })),
            Effect.result(send("orders", "small"))
          ],
          { concurrency: "unbounded" }
        )
        yield* Effect.sleep("1 minute")
        Check.equal("outcomes", results.map(reasonOf), ["BodyTooLarge", "sent"])
        Check.equal("the connection lasts", broker.connection().since, since)
      })
  ),
  test("a consumer without a channel names the limit, and declarations go on", [{ channelMax: 3 }, {}], ({ broker }) =>
    Effect.gen(function* () {
      const start = (queue: string) => Consumer.start(queue, { retry: RetryPolicy.make() }, () => {})
      yield* start("one")
      yield* start("two")
      const third = yield* Effect.flip(start("three"))
      Check.isTrue("the error names the limit", /channel_max/.test(String(third)), String(third))
      const counts = yield* broker.admin.counts("one")
      Check.equal("ready", counts.ready, 0)
    })
  ),
  test("retries go on after the exchange of delayed messages was deleted", [{}, {}], ({ send, server }) =>
    Effect.gen(function* () {
      const runs = yield* failing("orders", 300)
      yield* send("orders", "a")
      yield* Wait.until("all runs of the first", () => runs.length === 4)
      server.vhost.exchanges.delete("requeue.v1.deliver")
      yield* Effect.sleep("1 minute")
      yield* send("orders", "b")
      yield* Wait.until("all runs of the second", () => runs.length === 8, 60_000)
    })
  ),
  test("publishers wait while an alarm lasts, and acks do not", [{}, {}], ({ send, server }) =>
    Effect.gen(function* () {
      let runs = 0
      yield* Consumer.start<string>("orders", { retry: RetryPolicy.make() }, () => void runs++)
      server.alarm("low on memory")
      // The server blocks the connection after the next publication.
      yield* send("orders", "a")
      yield* Wait.until("the first run", () => runs === 1)
      const second = yield* Effect.result(send("orders", "b"))
      Check.equal("during the alarm", reasonOf(second), "Throttled")
      server.alarm(undefined)
      yield* send("orders", "c")
      yield* Wait.until("the last run", () => runs >= 2)
      yield* Wait.until("all acks", () => server.vhost.queues.get("orders")?.counts.unsettled === 0)
    })
  ),
  ...(["ladder", "levels", "perMessageTtl", "perMessageTtlShared", "perDelayQueue", "waitLoop", "native"] as const).map(
    (topology) => life(topology)
  ),
  ...(["ladder", "levels"] as const).map((topology) => life(topology, { queueType: "classic" })),
  ...Returned.cases,
  ...Limits.cases
]
