/** Browsing messages that wait for their delay. */
import { Check } from "@requeue/conformance"
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import { DelayedMessages } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { raw } from "../traps/trap.ts"
import { ids, now, outgoing, queueName, until } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

/** A policy whose delays are these. */
const delays = (...millis: ReadonlyArray<number>) =>
  RetryPolicy.make({ maxRetries: millis.length, backoff: Backoff.sequence(millis) })

/** A delay of which no test sees the end, and the level in which it begins: of 2 ** 16 steps of 50 ms, which is 55 minutes. */
const long = 3_600_000
const firstLevel = 50 * 2 ** 16

interface Arrival {
  readonly id: string
  readonly attempts: number
  readonly at: number
}

/** A consumer that writes down what arrives. */
const arrivals = (queue: string, retry: RetryPolicy.RetryPolicy) =>
  Effect.gen(function* () {
    const seen: Array<Arrival> = []
    yield* Consumer.start<string>(queue, { retry, concurrency: 100 }, ({ attempts, id }) => {
      seen.push({ id, attempts, at: now() })
    })
    return seen
  })

export const cases = [
  test("browsing a delayed message leaves it its time, also where another one has come behind it meanwhile", (adapter, on) => {
    const { proxy, url } = adapter.server
    const [delay, pause] = [8000, 6000]
    return on({ topology: "perDelayQueue" }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("timed")
        const retry = delays(delay)
        const seen = yield* arrivals(queue, retry)
        const sent = now()
        yield* broker.publish([outgoing(queue, "a", { delay })])
        yield* Effect.sleep(sent + pause - now())
        const { count } = yield* DelayedMessages.make(queue, { retry })
        let behind = Number.POSITIVE_INFINITY
        const publish = () =>
          raw(url, async (channel) => {
            channel.sendToQueue(`${queue}_dlq_8`, Buffer.from('"b"'), { persistent: true, messageId: "b" })
            await channel.waitForConfirms()
          })
        // While it is held, nothing reaches the server until another one is there.
        const filter = () => {
          proxy.blackhole(true)
          void publish().then(() => {
            behind = now()
            proxy.blackhole(false)
          })
          return true
        }
        Check.equal("browsed", (yield* count({ filter })).selected, 1)
        yield* until("it comes", () => seen.length > 0)
        const [{ at, attempts, id }] = seen as [Arrival]
        Check.equal("arrival", [id, attempts], ["a", 1])
        Check.isTrue("it is not early", at - sent >= delay, at - sent)
        Check.isTrue("it did not wait for the one behind it", at < behind + delay, { at, behind })
      })
    )
  }),

  test("a delayed message that was browsed 25 times waits on, and has used up no attempt", (_, on) =>
    on({ prefix: queueName("worn") }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("worn")
        const retry = RetryPolicy.make()
        const seen = yield* arrivals(queue, retry)
        yield* broker.publish([outgoing(queue, "a", { delay: long })])
        const { list } = yield* DelayedMessages.make(queue, { retry })
        // On its way from one level to the next, it is not seen.
        for (let times = 0; times < 25 && seen.length === 0; ) times += (yield* list()).selected
        Check.equal("arrivals", seen, [])
        const { messages } = yield* list()
        Check.equal(
          "attempts",
          messages.map(({ attempts }) => attempts),
          [1]
        )
        // One that the server hands on early is in the levels below.
        const { backoff } = yield* Backlog.of(broker, { queue, retry })
        Check.equal("where it waits", backoff, [{ within: 2 * firstLevel, count: 1 }])
      })
    )),

  test("50 of 60 delayed messages that are removed at once are gone", (_, on) =>
    on({ prefix: queueName("purged") }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("purged")
        yield* broker.publish(ids(60).map((id) => outgoing(queue, id, { delay: long })))
        const { count, purge } = yield* DelayedMessages.make(queue)
        const purged = yield* purge({ filter: ({ id }) => Number(id.slice(1)) % 6 > 0 })
        Check.equal("purged", purged, { removed: 50, browsed: 60, isWhole: true })
        Check.equal("left", yield* count(), { selected: 10, browsed: 10, isWhole: true })
      })
    )),

  test("delayed messages of another queue are neither shown nor removed, where they wait in the same place", (_, on) =>
    on({ prefix: queueName("shared") }, (broker) =>
      Effect.gen(function* () {
        const [one, other] = [queueName("one"), queueName("other")]
        yield* broker.publish([one, other].map((queue) => outgoing(queue, "a", { delay: long })))
        const { purge } = yield* DelayedMessages.make(one)
        Check.equal("purged", yield* purge({ all: true }), { removed: 1, browsed: 1, isWhole: true })
        const { count } = yield* DelayedMessages.make(other)
        Check.equal("of the other one", (yield* count()).selected, 1)
      })
    )),

  test("a backlog counts each rung that is there, and makes none", (adapter, on) => {
    const prefix = queueName("counted")
    const rung = (millis: number) => `${prefix}.v1.q.delay.${millis}`
    return on({ prefix }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("counted")
        const retry = delays(60_000, 120_000, 180_000)
        yield* Effect.scoped(
          Effect.gen(function* () {
            let failed = 0
            yield* Consumer.start<string>(
              queue,
              { retry, onEvent: ({ _tag }) => void (_tag === "RetryScheduled" && failed++) },
              ({ id }) => Effect.fail(new Error(id))
            )
            yield* broker.publish(ids(7).map((id) => outgoing(queue, id)))
            yield* until("retries", () => failed === 7)
          })
        )
        yield* Effect.promise(() => raw(adapter.server.url, (channel) => channel.deleteQueue(rung(120_000))))
        const { backoff, delayed, ready } = yield* Backlog.of(broker, { queue, retry })
        Check.equal(
          "backlog",
          { backoff, delayed, ready },
          { backoff: [{ within: 60_000, count: 7 }], delayed: 7, ready: 0 }
        )
        const found = yield* Effect.promise(() =>
          raw(adapter.server.url, (channel) => channel.checkQueue(rung(120_000))).then(
            () => "there",
            () => "not there"
          )
        )
        Check.equal("the rung that was deleted", found, "not there")
      })
    )
  })
]
