/** Handlers that are longer than the server waits for them. */
import type { Event } from "@requeue/core"
import { RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import * as Version from "../../src/internal/version.ts"
import { shared } from "../real/server.ts"
import { consume, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, quiet, until } from "../world.ts"

const { url, version } = await shared()
// https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout; before 4.3 the server looks once a minute.
const isSoon = Version.hasFailureCount(version)

const within = 30_000
const options = (queue: string) => ({ url, queues: { [queue]: { arguments: { "x-consumer-timeout": 3000 } } } })

const succeeded = (events: ReadonlyArray<Event.Event>) =>
  events.flatMap((event) => (event._tag === "Succeeded" ? [event.id] : []))

test.runIf(isSoon)(
  "a handler beyond the consumer timeout: its consumer says so, and its message is run once",
  async () => {
    const queue = queueName("slow")
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    await on(options(queue), (broker) =>
      Effect.gen(function* () {
        const done = yield* Deferred.make<void>()
        const onEvent = (event: Event.Event) => void events.push(event)
        const { health } = yield* consume(queue, runs, { concurrency: 3, onEvent }, () => Deferred.await(done))
        yield* broker.publish([outgoing(queue, "a")])
        let isTold = false
        // It is told until the queue is consumed again, which may take less time than passes between two looks of a long wait.
        const look = Effect.sync(() => {
          isTold ||= health().trouble?.because.includes("exceeded the server's consumer timeout") === true
        })
        yield* Effect.forkScoped(Effect.forever(Effect.andThen(look, Effect.sleep(5))))
        yield* until("the reason", () => isTold, within)
        yield* until("the second delivery", () => events.filter(({ _tag }) => _tag === "Received").length > 1, within)
        yield* Deferred.succeed(done, undefined)
        yield* until("a success", () => succeeded(events).length > 0, within)
        yield* quiet(broker)
        assert.strictEqual(health().state, "running")
      })
    )
    assert.deepStrictEqual(
      runs.map(({ id }) => id),
      ["a"]
    )
    assert.deepStrictEqual(await drainIds(url, queue), [])
  }
)

test.runIf(isSoon)(
  "a foreign message that the server takes back counts each delivery, and only the last ack is valid",
  async () => {
    const queue = queueName("foreign")
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    await on(options(queue), (broker) =>
      Effect.gen(function* () {
        const done = yield* Deferred.make<void>()
        const retry = RetryPolicy.make({ maxRetries: 5 })
        const onEvent = (event: Event.Event) => void events.push(event)
        yield* consume(queue, runs, { retry, concurrency: 3, onEvent }, () =>
          runs.length < 3 ? Deferred.await(done) : Deferred.succeed(done, undefined)
        )
        yield* Effect.promise(() =>
          raw(url, async (channel) =>
            channel.sendToQueue(queue, Buffer.from('"a"'), { messageId: "a", persistent: true })
          )
        )
        yield* until("a success", () => succeeded(events).length > 0, within)
        yield* quiet(broker)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1, 2, 3]
    )
    assert.deepStrictEqual(succeeded(events), ["a"])
    assert.deepStrictEqual(await drainIds(url, queue), [])
  }
)

test.runIf(isSoon).each(["sent", "returned by a process that has died"])(
  "messages that a rate limit holds back longer than the consumer timeout stay with the server: %s",
  async (history) => {
    const queue = queueName("limited")
    const ids = ["a", "b", "c"]
    const runs: Array<Run> = []
    const events: Array<Event.Event> = []
    await on(options(queue), (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(ids.map((id) => outgoing(queue, id)))
        if (history !== "sent")
          yield* Effect.promise(() =>
            raw(url, async (channel) => {
              for (const _ of ids) assert.isObject(await channel.get(queue))
            })
          )
        const onEvent = (event: Event.Event) => void events.push(event)
        const rateLimit = { max: 1, per: "7 seconds" } as const
        const { health } = yield* consume(queue, runs, { rateLimit, prefetch: 10, concurrency: 10, onEvent })
        yield* until("three successes", () => succeeded(events).length === 3, 4 * within)
        yield* quiet(broker)
        assert.isUndefined(health().trouble)
      })
    )
    const received = events.flatMap((event) => (event._tag === "Received" ? [event.id] : []))
    assert.deepStrictEqual(received.toSorted(), ids)
    assert.deepStrictEqual(await drainIds(url, queue), [])
  }
)
