/** Transactions on the faces: promises, Effects, pullers, synchronous transactions, and the tools of a user's test. */
import { assert, describe, it } from "@effect/vitest"
import { Consumer, Producer, Transaction } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { MemoryBroker, MemoryTransaction } from "../src/index.ts"
import * as Testing from "../src/Testing.ts"

const no = new Error("no")

describe("a handler in a user's test", () => {
  it("commits its effect, its messages and its ack together, in virtual time", async () => {
    await using broker = await Testing.open()
    const { requeue } = broker
    const paid: Array<string> = []
    const retry = { maxRetries: 2 }
    await requeue.consume("payments", { retry, retryDelay: "10 seconds" }, (message) =>
      MemoryTransaction.run(async (transaction) => {
        await message.within(transaction)
        transaction.onCommit(() => paid.push(message.id))
        await requeue.within(transaction).sendBatch("receipts", [{ body: message.id }], { delay: "1 minute" })
        if (message.attempts === 1) throw no
      })
    )
    await requeue.send("payments", { amount: 5 }, { id: "p1" })
    await broker.waitUntilIdle()
    assert.deepStrictEqual([paid, broker.now()], [["p1"], 10_000])
    const happened = broker.happened().map(({ _tag, at, queue }) => `${at} ${_tag} ${queue}`)
    assert.deepStrictEqual(happened, [
      "0 Sent payments",
      "0 Received payments",
      "0 RetryScheduled payments",
      "10000 Received payments",
      "10000 Succeeded payments",
      "10000 Sent receipts"
    ])
    assert.deepStrictEqual(
      (await broker.sent("receipts")).map(({ at, body, delay }) => [at, body, delay]),
      [[10_000, "p1", 60_000]]
    )
  })

  it("may be synchronous: within and send throw, and roll back", async () => {
    await using broker = await Testing.open({ maxBodySize: 100 })
    const { requeue } = broker
    const synchronously = (body: (transaction: MemoryTransaction.Transaction) => void) => {
      const transaction = MemoryTransaction.make()
      body(transaction)
      transaction.commit()
    }
    await requeue.consume("payments", { retry: { maxRetries: 0 } }, (message) =>
      synchronously((transaction) => {
        void message.within(transaction)
        void requeue.within(transaction).send("receipts", message.body)
        if (message.id === "large") void requeue.within(transaction).send("receipts", "x".repeat(200))
        if (message.id === "invalid") void requeue.within(transaction).send("receipts", "x", { delay: -1 })
      })
    )
    for (const id of ["good", "large", "invalid"]) await requeue.send("payments", id, { id })
    await broker.waitUntilIdle()
    assert.deepStrictEqual(
      (await broker.sent("receipts")).map(({ body }) => body),
      ["good"]
    )
    assert.deepStrictEqual(
      (await broker.deadLettersOf("payments")).map(({ error, id }) => [id, error.name]),
      [
        ["large", "BrokerError"],
        ["invalid", "InvalidDelay"]
      ]
    )
  })

  it("pulls a batch and acks it in a transaction", async () => {
    await using broker = await Testing.open()
    const { requeue } = broker
    const puller = await requeue.puller("payments")
    await requeue.send("payments", 1)
    const batch = await broker.finish(puller.pull())
    await MemoryTransaction.run((transaction) => batch!.within(transaction))
    batch!.settle()
    await broker.waitUntilIdle()
    assert.deepInclude(broker.happened().at(-1), { _tag: "Succeeded", inTransaction: true })
  })
})

describe("a transaction", () => {
  it("ends once, and then takes no calls", () => {
    const transaction = MemoryTransaction.make()
    transaction.rollback()
    transaction.rollback()
    assert.throws(transaction.commit, "memory: commit: Unsupported: the transaction was already rolled back")
    assert.throws(() => transaction.onCommit(() => {}), "onCommit")
  })

  it("stores nothing on a broker that was closed before the commit", async () => {
    const transaction = MemoryTransaction.make()
    const effects: Array<string> = []
    await using requeue = await connect("memory:")
    await requeue.within(transaction).send("q", 1)
    transaction.onCommit(() => effects.push("effect"))
    await requeue.close()
    assert.throws(transaction.commit, "the broker was closed")
    assert.deepStrictEqual(effects, [])
    assert.throws(() => void requeue.within(transaction).send("q", 1), "the connection to the broker memory was closed")
  })

  it("is refused where it is none, with a remedy", async () => {
    await using requeue = await connect("memory:")
    assert.throws(
      () => void requeue.within({ query: () => {} }).send("q", 1),
      "expected a transaction of the memory broker, got an object. Pass the transaction that MemoryTransaction.run"
    )
  })
})

it.effect("works in Effects: a failure rolls back, and a success commits", () =>
  Effect.gen(function* () {
    const done: Array<string> = []
    const receipts = yield* Producer.make<string>("receipts")
    const payments = yield* Producer.make<string>("payments")
    const ended = Promise.withResolvers<void>()
    yield* Consumer.start<string>("payments", {}, (message) =>
      MemoryTransaction.runEffect((transaction) =>
        Effect.gen(function* () {
          yield* Transaction.within(message, transaction)
          transaction.onCommit(() => done.push(`${message.body} ${message.attempts}`))
          yield* receipts.within(transaction).send(`${message.body} ${message.attempts}`)
          if (message.attempts === 1) yield* Effect.fail(no)
        })
      )
    )
    yield* Consumer.start<string>("receipts", {}, (message) => {
      done.push(`receipt ${message.body}`)
      ended.resolve()
    })
    yield* payments.send("a")
    yield* Effect.promise(() => ended.promise)
    assert.deepStrictEqual(done, ["a 2", "receipt a 2"])
  }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
)
