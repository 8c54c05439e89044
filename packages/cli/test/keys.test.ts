/** What commands show of messages with a key and with `fairBy`. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, Consumer, Producer, RetryPolicy } from "@requeue/core"
import { Counting } from "@requeue/core/port"
import { DeadLetters, QueueStatus as Status } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import * as LetterView from "../src/LetterView.ts"
import * as QueueStatus from "../src/QueueStatus.ts"

const plain = (_: unknown, text: string): string => text

it("a parked letter is shown with its key, the messages that wait for it, and whose it is", () =>
  Effect.runPromise(
    Effect.gen(function* () {
      const retry = RetryPolicy.make({ maxRetries: 0, afterDeadLetter: "park" })
      const { send } = yield* Producer.make("orders")
      for (const id of ["a", "b", "c"]) yield* send(id, { id, key: "customer-7", fairBy: "acme" })
      yield* Consumer.start("orders", { retry }, () => Effect.fail(new Error("no")))
      const broker = yield* Broker.Broker
      const letters = yield* DeadLetters.make("orders.dlq")
      while (((yield* Counting.within(broker, "orders.dlq", 1000)).ready ?? 0) === 0) yield* Effect.yieldNow
      const [letter] = yield* letters.list()
      assert.include(LetterView.detail(letter!), "key        customer-7, parked: 2 messages wait")
      assert.include(LetterView.detail(letter!), "\nfairBy     acme\n")
      const { blocks, fairBy, key } = LetterView.toJson(letter!)
      assert.deepStrictEqual([key, blocks, fairBy], ["customer-7", 2, "acme"])
      const status = { queue: "orders", ...(yield* Status.of(broker, { queue: "orders", retry })) }
      assert.match(QueueStatus.table([status], plain), /delayed +blocked +due within/)
      assert.include(QueueStatus.line(status), "blocked: 2")
      assert.strictEqual(QueueStatus.toJson(status).blocked, 2)
    }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
  ))
