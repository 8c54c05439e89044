/** Looks at messages that wait for their delay. */
import { Check } from "@requeue/conformance"
import { Backlog, Backoff, type Broker, Consumer, DelayedMessages, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { raw } from "../traps/trap.ts"
import { ids, now, outgoing, queueName, until } from "../world.ts"
import { test } from "./Adapter.ts"

/** A policy whose delays are these. */
const delays = (...millis: ReadonlyArray<number>) =>
  RetryPolicy.make({ maxRetries: millis.length, backoff: Backoff.sequence(millis) })

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

/** Sends messages with a delay; answers when each was sent. */
const send = (
  broker: Broker.Service,
  queue: string,
  names: ReadonlyArray<string>,
  delay: number,
  sent = new Map<string, number>()
) =>
  Effect.gen(function* () {
    for (const id of names) {
      sent.set(id, now())
      yield* broker.publish([outgoing(queue, id, { delay })])
    }
    return sent
  })

/** Insists that each came once, as its first attempt, and not before its time. */
const checkTimes = (seen: ReadonlyArray<Arrival>, sent: ReadonlyMap<string, number>, delay: number) => {
  Check.equal("arrivals", seen.map(({ id }) => id).toSorted(), [...sent.keys()].toSorted())
  Check.equal("attempts", new Set(seen.map(({ attempts }) => attempts)), new Set([1]))
  for (const { at, id } of seen) Check.isTrue(`${id} is not early`, at - sent.get(id)! >= delay, at - sent.get(id)!)
}

export const cases = [
  test("looks at delayed messages while others come leave each its time", (_, on) => {
    const [delay, pause] = [4000, 2500]
    const options = { topology: "perDelayQueue" } as const
    return on(options, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("timed")
        const retry = delays(delay)
        const seen = yield* arrivals(queue, retry)
        const first = yield* send(broker, queue, ids(5, "a"), delay)
        yield* Effect.sleep(pause)
        const { count } = yield* DelayedMessages.make(queue, { retry })
        const begun = now()
        let looks = 0
        const later = new Map<string, number>()
        const looking = Effect.suspend(() => (looks++, count()))
        const stream = yield* Effect.forkChild(send(broker, queue, ids(300, "b"), delay, later))
        // Others come until after the last look.
        yield* Effect.repeat(looking, { while: () => later.size < 200 })
        yield* Fiber.join(stream)
        Check.isTrue("looks", looks >= 3, looks)
        yield* until("all of them", () => seen.length >= 305)
        checkTimes(seen, new Map([...first, ...later]), delay)
        for (const { at, id } of seen.filter(({ id }) => first.has(id)))
          Check.isTrue(`${id} did not wait for those behind it`, at < begun + delay, at - first.get(id)!)
      })
    )
  }),

  test("a delayed message that was looked at 25 times comes at its time, as its first attempt", (_, on) =>
    on({ prefix: queueName("worn") }, (broker) =>
      Effect.gen(function* () {
        const [queue, delay] = [queueName("worn"), 12_800]
        const retry = RetryPolicy.make()
        const seen = yield* arrivals(queue, retry)
        const sent = yield* send(broker, queue, ["a"], delay)
        const { count } = yield* DelayedMessages.make(queue, { retry })
        let looks = 0
        // On its way from one level to the next, it is not seen.
        while (looks < 25 && seen.length === 0) looks += (yield* count()).selected
        Check.equal("arrivals before its time", [seen.length, looks], [0, 25])
        yield* until("it comes", () => seen.length > 0)
        checkTimes(seen, sent, delay)
      })
    )),

  test("50 of 60 delayed messages that are removed at once are gone", (_, on) =>
    on({ prefix: queueName("purged") }, (broker) =>
      Effect.gen(function* () {
        const [queue, delay] = [queueName("purged"), 5000]
        const retry = RetryPolicy.make()
        const stays = ({ id }: { readonly id: string }) => Number(id.slice(1)) % 6 === 0
        const seen = yield* arrivals(queue, retry)
        yield* broker.publish(ids(60).map((id) => outgoing(queue, id, { delay })))
        const { count, purge } = yield* DelayedMessages.make(queue, { retry })
        const purged = yield* purge({ filter: (message) => !stays(message) })
        Check.equal("purged", purged, { removed: 50, looked: 60, isWhole: true })
        Check.equal("left", (yield* count()).selected, 10)
        yield* until("the others", () => seen.length >= 10)
        Check.equal("all of them stay", seen.every(stays), true)
      })
    )),

  test("delayed messages of another queue are neither shown nor removed, where they wait in the same place", (_, on) =>
    on({ prefix: queueName("shared") }, (broker) =>
      Effect.gen(function* () {
        const [one, other, delay] = [queueName("one"), queueName("other"), 4000]
        const retry = RetryPolicy.make()
        const seen = yield* arrivals(other, retry)
        yield* broker.publish([outgoing(one, "a", { delay }), outgoing(other, "b", { delay })])
        const { purge } = yield* DelayedMessages.make(one, { retry })
        Check.equal("purged", yield* purge({ all: true }), { removed: 1, looked: 1, isWhole: true })
        yield* until("the other one", () => seen.length > 0)
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
