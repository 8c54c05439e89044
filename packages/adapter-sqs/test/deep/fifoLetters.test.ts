/** Browses dead letters of FIFO queues, of which SQS shows only the first of each group. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import { left, on, outgoing, queueName } from "../real/world.ts"

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
          const dry = yield* letters.redrive({ dryRun: true, to: "back.fifo" })
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
    assert.match(answer.message, /letters were not looked at.*first of each group/)
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
    assert.match(String(told), /partial: the broker shows only the first of each group/)
  })
})
