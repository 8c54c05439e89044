/** Browses dead letters of FIFO queues, of which SQS shows only the first of each group. */
import { Broker, RetryPolicy } from "@requeue/core"
import { DeadLetters, LetterLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { consume, drain, idOf, left, no, on, outgoing, queueName, untilEmpty } from "../real/world.ts"

const { behind, url } = await strict()

const groups = [0, 1, 2]

/** So many letters of each of three groups, and what is done with them. */
const withLetters = <A, E>(each: number, work: (letters: DeadLetters.DeadLetters) => Effect.Effect<A, E>) => {
  const queue = `${queueName("letters")}.dlq.fifo`
  const program = on({ url }, (broker) =>
    Effect.gen(function* () {
      for (let n = 0; n < each; n++) {
        const of = (group: number) =>
          outgoing(queue, `${group}-${n}`, { headers: { "message-group-id": `g${group}` }, now: 1000 + n })
        yield* broker.publish(groups.map(of))
      }
      return yield* work(yield* DeadLetters.make(queue))
    })
  )
  return Effect.map(
    Effect.promise(() => program),
    (answer) => ({ answer, queue })
  )
}

const ids = (letters: ReadonlyArray<DeadLetters.DeadLetter>) => letters.map(({ id }) => id).toSorted()

describe.concurrent("of a FIFO queue, by one group after the other", () => {
  test("several letters of each group are listed, grouped, counted and removed", async () => {
    const { answer, queue } = await Effect.runPromise(
      withLetters(3, (letters) =>
        Effect.gen(function* () {
          const all = yield* letters.list({ limit: 1000 })
          const some = yield* letters.list({ filter: ({ metadata }) => metadata.id.endsWith("-2") })
          const grouped = yield* letters.group()
          const dry = yield* letters.redrive({ dryRun: true, to: "back.fifo", create: true })
          const removed = yield* letters.purge({ filter: ({ metadata }) => metadata.id.endsWith("-1") })
          return { all: ids(all), some: ids(some), grouped: grouped.length, dry: dry.redriven, removed }
        })
      )
    )
    const every = groups.flatMap((group) => [0, 1, 2].map((n) => `${group}-${n}`))
    assert.deepStrictEqual(answer, { all: every, some: ["0-2", "1-2", "2-2"], grouped: 1, dry: 9, removed: 3 })
    assert.strictEqual(await left(behind, queue), 6)
  })

  test("a purge that cannot see all removes what it sees, and says what it has not seen", async () => {
    const { answer, queue } = await Effect.runPromise(
      withLetters(15, (letters) => Effect.flip(letters.purge({ filter: ({ metadata }) => /-[05]$/.test(metadata.id) })))
    )
    assert.match(answer.message, /letters were not browsed.*first letters of each group/)
    assert.notMatch(answer.message, /Call it again/)
    assert.isAbove(Number(Reflect.get(answer, "removed")), 0)
    assert.strictEqual(await left(behind, queue), 45 - Number(Reflect.get(answer, "removed")))
  })

  test("a list that cannot show all says so in the log", async () => {
    const told: Array<unknown> = []
    const logger = Logger.make(({ message }) => void told.push(message))
    const { answer } = await Effect.runPromise(
      withLetters(15, (letters) =>
        letters
          .list({ limit: 1000 })
          .pipe(Effect.provide(Logger.layer([logger])), Effect.provideService(References.MinimumLogLevel, "Warn"))
      )
    )
    assert.isAtLeast(answer.length, 10)
    assert.isBelow(answer.length, 45)
    assert.match(String(told), /in part: the broker shows only the first letters of each group/)
  })
})

describe.concurrent("SQS drops what has the deduplication id of another message, but", () => {
  const retry = RetryPolicy.make({ maxRetries: 0 })
  const all = ["m0", "m1", "m2"]

  /** So many letters of a consumer, and what is done with them; answers what is in a queue at the end. */
  const given = (
    work: (dlq: string, letters: DeadLetters.DeadLetters) => Effect.Effect<string, unknown, Broker.Broker>
  ) => {
    const queue = `${queueName("dropped")}.fifo`
    const dlq = queue.replace(".fifo", ".dlq.fifo")
    const program = on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* consume(queue, [], { retry }, () => no)
            yield* broker.publish(all.map((id) => outgoing(queue, id, { headers: { "message-group-id": id } })))
            yield* untilEmpty(behind, queue)
          })
        )
        return yield* work(dlq, yield* DeadLetters.make(dlq))
      })
    )
    return program.then((last) => drain(behind, last)).then((found) => found.map(idOf).toSorted())
  }

  test("letters that are parked come back", async () => {
    const ids = await given((dlq, letters) =>
      Effect.gen(function* () {
        const aside = dlq.replace(".dlq.", ".later.")
        yield* letters.park({ to: aside, create: true })
        yield* (yield* DeadLetters.make(aside)).park({ to: dlq, create: true, force: aside })
        return dlq
      })
    )
    assert.deepStrictEqual(ids, all)
  })

  test("letters that are exported and removed can be imported", async () => {
    const ids = await given((dlq, letters) =>
      Effect.gen(function* () {
        const { publish } = yield* Broker.Broker
        const lines = (yield* letters.list()).map((letter) => LetterLine.format(dlq, letter))
        yield* letters.purge({ all: true })
        yield* publish(lines.map((line) => LetterLine.parse(line)).filter((read) => "queue" in read))
        return dlq
      })
    )
    assert.deepStrictEqual(ids, all)
  })

  test("letters with one id are letters of their own, and so are their redrives", async () => {
    const queue = `${queueName("twice")}.fifo`
    const [dlq, work] = [queue.replace(".fifo", ".dlq.fifo"), queue.replace(".fifo", ".work.fifo")]
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* consume(queue, [], { retry }, () => no)
            // The second one as if it was sent five minutes later.
            for (const own of ["first", "second"])
              yield* broker.publish([outgoing(queue, "m", { headers: { "message-deduplication-id": own } })])
            yield* untilEmpty(behind, queue)
          })
        )
        yield* (yield* DeadLetters.make(dlq)).redrive({ to: work, create: true })
      })
    )
    assert.deepStrictEqual((await drain(behind, work)).map(idOf), ["m", "m"])
    assert.strictEqual(await left(behind, dlq), 0)
  })
})

describe.concurrent("one queue has several names", () => {
  const arn = (name: string) => `arn:aws:sqs:eu-west-1:000000000000:${name}`

  test("a queue is known by each of them, and no other queue is taken for it", async () => {
    const name = queueName("names")
    await behind.createQueue({ QueueName: `${name}-dlq` })
    const is = await on({ url }, ({ admin }) =>
      Effect.forEach(
        [`${name}-dlq`, arn(`${name}-dlq`), arn(`${name}.dlq`), `${name}.other`, `${name}.dlq.fifo`, "no name"],
        (other) => admin.isSame!(`${name}.dlq`, other)
      )
    )
    assert.deepStrictEqual(is, [true, true, true, false, false, false])
    const isStranger = await on({ url }, ({ admin }) =>
      Effect.orElseSucceed(
        admin.isSame!(`${name}.dlq`, arn(`${name}-dlq`).replace(/0{12}/, "123456789012")),
        () => false
      )
    )
    assert.isFalse(isStranger)
  })

  test("letters stay where a move would move them to themselves, and go back to where they came from", async () => {
    const queue = `${queueName("itself")}.fifo`
    const dlq = queue.replace(".fifo", ".dlq.fifo")
    const moved = await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* consume(queue, [], { retry: RetryPolicy.make({ maxRetries: 0 }) }, () => no)
            yield* broker.publish(["a", "b"].map((id) => outgoing(queue, id)))
            yield* untilEmpty(behind, queue)
          })
        )
        const letters = yield* DeadLetters.make(dlq)
        const written = dlq.replace(".dlq", "-dlq")
        const moves = [
          letters.redrive({ to: written }),
          letters.park({ to: written }),
          letters.park({ to: arn(written) })
        ]
        const refused = yield* Effect.forEach(moves, (move) => Effect.map(move, ({ redriven }) => redriven))
        return [...refused, yield* letters.count, (yield* letters.redrive()).redriven]
      })
    )
    assert.deepStrictEqual(moved, [0, 0, 0, 2, 2])
    assert.strictEqual(await left(behind, queue), 2)
  })
})
