/** The order of FIFO queues, with handlers that fail. */
import { Backoff, BatchPolicy, Broker, Consumer, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { ids, on, type Run, tagged, until, type World } from "./world.ts"

const queue = "orders.fifo"
const groups = ["a", "b", "c"] as const
const each = 8
const all = groups.flatMap((group) => Array.from({ length: each }, (_, index) => `${group}${index}`))

const ofGroup = (names: ReadonlyArray<string>, group: string) => names.filter((id) => id.startsWith(group))

const put = ({ send }: World, broker: Broker.Service) =>
  Effect.forEach(groups, (group) =>
    send(broker, queue, ofGroup(all, group), { headers: { "message-group-id": group } })
  )

const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(1000) })

/** Every third message fails once, every fifth for good. */
const fails = (id: string, attempts: number): boolean => {
  const number = Number(id.slice(1))
  return (number % 3 === 0 && attempts < 2) || number % 5 === 4
}

/** Fails as planned, and for a message whose group is at work already. */
const handler = () => {
  const atWork = new Set<string>()
  return ({ attempts, id }: { readonly id: string; readonly attempts: number }) => {
    const group = id.slice(0, 1)
    if (atWork.has(group)) return Effect.fail(new Error(`${id} did not wait`))
    atWork.add(group)
    const work = Effect.andThen(Effect.sleep(5), fails(id, attempts) ? Effect.fail(new Error("no")) : Effect.void)
    return Effect.ensuring(
      work,
      Effect.sync(() => atWork.delete(group))
    )
  }
}

/** The runs of the messages of a group, in order. */
const expected = (group: string): ReadonlyArray<string> =>
  ofGroup(all, group).flatMap((id) => {
    const last = [1, 2].find((attempts) => !fails(id, attempts)) ?? 3
    return Array.from({ length: last }, (_, index) => `${id} ${index + 1}`)
  })

const total = groups.flatMap(expected).length

const runsOf = (runs: ReadonlyArray<Run>, group: string) =>
  ofGroup(
    runs.map(({ attempts, id }) => `${id} ${attempts}`),
    group
  )

test("groups are done in order, each retry before what is behind it, and every attempt is counted once", () =>
  on({}, (world) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      yield* put(world, yield* world.broker())
      // Two processes: neither knows what the other has received.
      const handle = handler()
      for (const _ of [1, 2])
        yield* world.consume(yield* world.broker(), queue, runs, { concurrency: 5, retry }, handle)
      yield* until("all runs", () => runs.length >= total)
      yield* world.untilEmpty(queue)
      for (const group of groups) assert.deepStrictEqual(runsOf(runs, group), expected(group))
    })
  ))

test("dead letters are in a FIFO queue, and can be sent back at once though SQS knows their ids", () =>
  on({}, (world) =>
    Effect.gen(function* () {
      const [runs, again]: [Array<Run>, Array<Run>] = [[], []]
      const one = yield* world.broker()
      yield* put(world, one)
      const none = { concurrency: 5, retry: RetryPolicy.make({ maxRetries: 0 }) }
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* world.consume(one, queue, runs, none, handler())
          yield* until("all of them", () => runs.length >= all.length)
          yield* world.untilEmpty(queue)
        })
      )
      const redrive = Effect.flatMap(DeadLetters.make(`${queue}.dlq`), (letters) => letters.redrive())
      const { redriven } = yield* Effect.provideService(redrive, Broker.Broker, one)
      yield* world.consume(one, queue, again, { concurrency: 5 })
      yield* until("what was sent back", () => again.length >= redriven)
      yield* world.untilEmpty(`${queue}.dlq`)
      yield* world.untilEmpty(queue)
      assert.deepStrictEqual(
        again.map(({ id }) => id).toSorted(),
        all.filter((id) => fails(id, 1))
      )
    })
  ))

test("with resend, a retry goes behind its group, and the others of its receive go on", () =>
  on({ fifoRetry: "resend" }, (world) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* world.broker()
      yield* put(world, one)
      const options = { concurrency: 5, retry: RetryPolicy.make({ maxRetries: 2 }) }
      yield* world.consume(one, queue, runs, options, handler())
      yield* until("all of them", () => runs.length >= total)
      yield* world.untilEmpty(queue)
      for (const group of groups) {
        const mine = runs.filter(({ id }) => id.startsWith(group))
        const firsts = mine.filter(({ attempts }) => attempts === 1).map(({ id }) => id)
        assert.deepStrictEqual(firsts, ofGroup(all, group))
        assert.sameMembers(runsOf(runs, group), [...expected(group)])
        const places = mine.map(({ id }) => id)
        assert.isAbove(places.lastIndexOf(`${group}0`), places.indexOf(`${group}${each - 1}`))
      }
    })
  ))

test("a consumer that backs off holds no group up for others, and none of it counts", () =>
  on({}, (world) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const { count, onEvent } = tagged()
      const one = yield* world.broker()
      yield* put(world, one)
      const consumerBackoff = ConsumerBackoff.nsq({ multiplier: 20_000 })
      yield* world.consume(one, queue, [], { consumerBackoff, retry, onEvent }, () => Effect.fail(new Error("down")))
      yield* until("a pause", () => count("BackoffEntered") > 0)
      yield* world.consume(yield* world.broker(), queue, runs, { concurrency: 5, retry })
      yield* until("all of them", () => runs.length >= all.length)
      yield* world.untilEmpty(queue)
      assert.isTrue(runs.every(({ attempts }) => attempts <= 2))
    })
  ))

test("with resend, batches have several messages of a group, in order, and a retry holds up none of them", () =>
  on({ fifoRetry: "resend" }, (world) =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<string>> = []
      const one = yield* world.broker()
      yield* put(world, one)
      const batch = BatchPolicy.make({ maxBatchSize: 5, maxBatchTimeout: 200 })
      const started = Consumer.startBatch(queue, { batch }, ({ messages }) => {
        batches.push(messages.map(({ id }) => id))
        for (const message of messages) if (message.id === "a1" && message.attempts === 1) message.retry()
      })
      yield* Effect.provideService(started, Broker.Broker, one)
      yield* until("all of them", () => batches.flat().length > all.length)
      yield* world.untilEmpty(queue)
      assert.isTrue(batches.some((some) => new Set(some.map((id) => id.slice(0, 1))).size < some.length))
      for (const group of groups) {
        const again = group === "a" ? ["a1"] : []
        assert.deepStrictEqual(ofGroup(batches.flat(), group), [...ofGroup(all, group), ...again])
      }
    })
  ))

test("a delayed send is refused, and nothing is sent", () =>
  on({}, ({ broker, left, send }) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(send(yield* broker(), queue, ["a", "b"], { delay: 1000 }))
      assert.deepInclude(error, { reason: "Unsupported", queue })
      assert.strictEqual(left(queue), 0)
    })
  ))

test.each([
  [1, "orders"],
  [3, "orders"],
  [12, "orders"],
  [3, queue]
])("without prefetch, concurrency %i, queue %s: no more are taken than handlers have", (concurrency, name) =>
  on({}, ({ broker, consume, counts, send, untilEmpty }) =>
    Effect.gen(function* () {
      const taken: Array<number> = []
      const names = ids(5 * concurrency)
      const one = yield* broker()
      for (const id of names)
        yield* send(one, name, [id], name === queue ? { headers: { "message-group-id": id } } : {})
      yield* consume(one, name, [], { concurrency, prefetch: 0 }, ({ id }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(Number(id.slice(1)) % 3 === 0 ? 60 : 5)
          taken.push(counts(name)[1]!)
        })
      )
      yield* until("all of them", () => taken.length === names.length)
      yield* untilEmpty(name)
      assert.isAtMost(Math.max(...taken), concurrency)
    })
  )
)
