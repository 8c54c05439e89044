/** Batches of FIFO queues: messages of a group together, in order, and the first that fails holds back its group. */
import { Backoff, BatchPolicy, Broker, Consumer, Failure, type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assert, test } from "vitest"
import { on, type Options, until, type World } from "./world.ts"

const queue = "orders.fifo"
const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(1000) })
const ten = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 300 })

const groupOf = (id: string): string => id.slice(0, 1)

/** Records the batches and runs, and finds batches that have a group at the same time. */
const watched = (handle: (batch: Handler.Batch<unknown>) => void = () => {}) => {
  const [batches, runs, faults]: [Array<string>, Array<string>, Array<string>] = [[], [], []]
  const atWork = new Set<string>()
  return {
    batches,
    runs,
    faults,
    handler: (got: Handler.Batch<unknown>) => {
      const groups = new Set(got.messages.map(({ id }) => groupOf(id)))
      for (const group of groups) if (atWork.has(group)) faults.push(`two batches have ${group}`)
      for (const group of groups) atWork.add(group)
      batches.push(got.messages.map(({ id }) => id).join(" "))
      runs.push(...got.messages.map(({ id }) => id))
      return Effect.gen(function* () {
        yield* Effect.sleep(20)
        handle(got)
      }).pipe(Effect.ensuring(Effect.sync(() => groups.forEach((group) => atWork.delete(group)))))
    }
  }
}

/** Runs a program on a broker, with messages whose ids begin with their group. */
const onBroker = (
  options: Options,
  names: ReadonlyArray<string>,
  program: (
    world: World & {
      readonly start: (
        consumer: Consumer.Options,
        handler: Handler.BatchHandler<unknown>
      ) => Effect.Effect<Consumer.Consumer, unknown, Scope.Scope>
    }
  ) => Effect.Effect<unknown, unknown, Scope.Scope>
) =>
  on(options, (world) =>
    Effect.gen(function* () {
      const one = yield* world.broker()
      for (const id of names) yield* world.send(one, queue, [id], { headers: { "message-group-id": groupOf(id) } })
      yield* program({
        ...world,
        start: (consumer, handler) =>
          Effect.provideService(Consumer.startBatch(queue, { batch: ten, ...consumer }, handler), Broker.Broker, one)
      })
    })
  )

/** Milliseconds: three quarters of a long poll that no consumer waits for. */
const soon = 15_000

const many = Array.from({ length: 30 }, (_, index) => `a${index}`)

test("what a paused consumer returns of a group comes at once when it goes on, though a poll is under way", () =>
  onBroker({ waitTime: 20_000 }, ["a0", "a1", "a2", "a3"], ({ now, start }) =>
    Effect.gen(function* () {
      const { handler, runs } = watched(({ messages }) => {
        if (messages[1]?.attempts === 1) messages[1].retry({ delay: 0 })
      })
      const consumer = yield* start({ concurrency: 2 }, handler)
      yield* until("the first batch", () => runs.length > 0)
      consumer.pause()
      yield* until("nothing in progress", () => consumer.health().inProgress === 0)
      const begun = now()
      consumer.resume()
      yield* until("the others", () => runs.includes("a3") && runs.length >= 7)
      assert.isBelow(now() - begun, soon)
    })
  ))

test("what a consumer that ends returns of a group comes to the next one at once, though a poll is under way", () =>
  onBroker({ waitTime: 20_000 }, many, ({ now, start, untilEmpty }) =>
    Effect.gen(function* () {
      const [first, second] = [watched(), watched()]
      const consumer = yield* start({ concurrency: 2 }, first.handler)
      yield* until("a batch", () => first.runs.length > 0)
      yield* consumer.drain()
      const begun = now()
      yield* start({}, second.handler)
      yield* until("all of them", () => new Set([...first.runs, ...second.runs]).size === many.length)
      assert.isBelow(now() - begun, soon)
      yield* untilEmpty(queue)
    })
  ))

test("one group comes in batches, as it was sent", () =>
  onBroker({}, many, ({ start, untilEmpty }) =>
    Effect.gen(function* () {
      const { batches, handler } = watched()
      yield* start({}, handler)
      yield* untilEmpty(queue)
      assert.deepStrictEqual(
        batches,
        [0, 10, 20].map((from) => many.slice(from, from + 10).join(" "))
      )
    })
  ))

test("the first that fails comes again with those behind it, and other groups go on", () =>
  onBroker({}, ["a1", "a2", "a3", "a4", "b1", "b2"], ({ idsIn, start, untilEmpty }) =>
    Effect.gen(function* () {
      const { batches, handler, runs } = watched(({ messages }) => {
        for (const message of messages) {
          if (message.id === "a2" && message.attempts < 3) message.retry()
          else message.ack()
        }
      })
      yield* start({ retry, concurrency: 2 }, handler)
      yield* untilEmpty(queue)
      const ofA = batches.map((ids) => ids.split(" ").filter((id) => groupOf(id) === "a"))
      assert.deepStrictEqual(
        ofA.filter(({ length }) => length > 0).map((ids) => ids.join(" ")),
        ["a1 a2 a3 a4", "a2 a3 a4", "a2 a3 a4"]
      )
      assert.deepStrictEqual(
        runs.filter((id) => groupOf(id) === "b"),
        ["b1", "b2"]
      )
      assert.deepStrictEqual(idsIn(`${queue}.dlq`), [])
    })
  ))

test("one that is dead-lettered lets its group go on", () =>
  onBroker({}, ["a1", "a2", "a3"], ({ idsIn, start, untilEmpty }) =>
    Effect.gen(function* () {
      const { batches, handler } = watched(({ messages }) => {
        for (const message of messages)
          if (message.id === "a2") message.fail(new Failure.PermanentError({ message: "never" }))
      })
      yield* start({ retry }, handler)
      yield* untilEmpty(queue)
      assert.deepStrictEqual(batches, ["a1 a2 a3"])
      assert.deepStrictEqual(idsIn(`${queue}.dlq`), ["a2"])
    })
  ))

test("a batch that is smaller than its group leaves the rest for the next one, which another batch does not take", () => {
  const names = ["a", "b", "c"].flatMap((group) => Array.from({ length: 12 }, (_, index) => `${group}${10 + index}`))
  return onBroker({}, names, ({ start, untilEmpty }) =>
    Effect.gen(function* () {
      const failed = new Set<string>()
      const { faults, handler, runs } = watched(({ messages }) => {
        for (const message of messages) {
          if (Number(message.id.slice(1)) % 4 > 0 || failed.has(message.id)) continue
          failed.add(message.id)
          message.retry({ delay: 0 })
        }
      })
      const small = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 50 })
      yield* start({ batch: small, retry, concurrency: 4 }, handler)
      yield* untilEmpty(queue)
      assert.deepStrictEqual(faults, [])
      for (const group of ["a", "b", "c"]) {
        const mine = runs.filter((id) => groupOf(id) === group)
        // The last run of each is the one that ended it.
        const ends = [...new Set(mine.toReversed())].toReversed()
        assert.deepStrictEqual(
          ends,
          names.filter((id) => groupOf(id) === group)
        )
      }
      assert.strictEqual(failed.size, 9)
    })
  )
})
