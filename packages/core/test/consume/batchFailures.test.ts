/** What the failures of a batch count towards consumer backoff. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import type { Batch } from "../../src/message/Handler.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

type Fail = (batch: Batch<unknown>) => void

const throws: Fail = () => {
  throw new Error("down")
}
const failsEach: Fail = ({ messages }) => messages.forEach((message) => message.fail(new Error("down")))

/** How many batches of three messages, which fail so, begin a pause; `undefined` for more than ten. */
const batchesUntilPause = (consumerBackoff: ConsumerBackoff.ConsumerBackoff, fail: Fail) => {
  const broker = Scripted.make()
  return Effect.gen(function* () {
    const retry = RetryPolicy.make({ maxRetries: "unlimited", deadLetter: "dead" })
    const batch = BatchPolicy.make({ maxBatchSize: 3 })
    let paused = false
    const onEvent: Consumer.Options["onEvent"] = ({ _tag }) => void (paused ||= _tag === "BackoffEntered")
    yield* Consumer.startBatch("q", { retry, batch, consumerBackoff, onEvent }, fail)
    for (let count = 1; count <= 10; count++) {
      for (const id of ["a", "b", "c"]) broker.deliver(`${id}${count}`)
      yield* TestClock.adjust(1)
      if (paused) return count
    }
    return undefined
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
}

const table: ReadonlyArray<readonly [string, ConsumerBackoff.ConsumerBackoff, Fail, number | undefined]> = [
  ["consecutive, its error: once", ConsumerBackoff.consecutive({ failures: 4 }), throws, 4],
  ["consecutive, retryAll: once", ConsumerBackoff.consecutive({ failures: 4 }), (batch) => batch.retryAll(), 4],
  ["consecutive, each by itself: each", ConsumerBackoff.consecutive({ failures: 4 }), failsEach, 2],
  [
    "consecutive, some by themselves and the rest with the error: the rest once",
    ConsumerBackoff.consecutive({ failures: 4 }),
    (batch) => {
      batch.messages[0]!.retry()
      return throws(batch)
    },
    2
  ],
  [
    "consecutive, with an ack in between: not in a row",
    ConsumerBackoff.consecutive({ failures: 2 }),
    (batch) => {
      batch.messages[1]!.ack()
      return throws(batch)
    },
    undefined
  ],
  ["ratio, its error: each message", ConsumerBackoff.ratio({ minAttempts: 7 }), throws, 3],
  ["nsq, its error: the first message", ConsumerBackoff.nsq(), throws, 1]
]

describe("a batch that fails", () => {
  it.effect.each(table)("counts for %s", ([, policy, fail, expected]) =>
    Effect.map(batchesUntilPause(policy, fail), (count) => assert.strictEqual(count, expected))
  )
})
