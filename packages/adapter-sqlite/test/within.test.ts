/** Transactions of programs that the adapter refuses, and errors in them: typed, with remedies, and in time to roll back. */
import { DatabaseSync } from "node:sqlite"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { steps } from "../src/internal/connect/schema.ts"
import * as VirtualDriver from "./driver.ts"
import { counts, newPath, openAt, outgoing, probe, run, send } from "./program.ts"

/** A consumer that holds the message `a`, and a program's own connection of its file. */
const holding = Effect.gen(function* () {
  const [driver, path] = [VirtualDriver.make(), yield* newPath]
  const { broker } = yield* openAt(path, driver, "?lease=2s")
  yield* send(broker, ["a"])
  const { ackWithin, inbox } = yield* probe(broker, 1)
  yield* Effect.sleep(1)
  const db = yield* Effect.acquireRelease(
    Effect.sync(() => driver.open(path)),
    (opened) => Effect.sync(() => opened.isOpen && opened.close())
  )
  const ack = (transaction: unknown) => ackWithin!(transaction, inbox)
  const publish = (transaction: unknown, message = outgoing("sent", "b")) =>
    broker.publishWithin!(transaction, [message])
  return { ack, broker, db, driver, path, publish }
})

type Holding = Effect.Success<typeof holding>

/** Runs an effect as a synchronous transaction does, and returns its error. */
const errorOf = (effect: Effect.Effect<void, BrokerError.BrokerError>): BrokerError.BrokerError =>
  Effect.runSync(Effect.flip(effect))

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** A turn of Node's loop, after which a weak reference no longer keeps its target. */
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

it("does not keep a connection that the program has closed", () =>
  run(
    Effect.gen(function* () {
      const { path, publish } = yield* holding
      const used = (): WeakRef<DatabaseSync> => {
        const db = new DatabaseSync(path)
        db.exec("BEGIN")
        Effect.runSync(publish(db))
        db.exec("COMMIT")
        db.close()
        return new WeakRef(db)
      }
      const connection = used()
      // First its statements, which keep it.
      for (let times = 0; times < 2; times++) {
        yield* turn
        collect()
      }
      assert.isTrue(connection.deref() === undefined)
    })
  ))

describe("the inbox", () => {
  it("forgets what is older, oldest first, and keeps the rest", () =>
    run(
      Effect.gen(function* () {
        const { broker, db } = yield* holding
        const { prune, record, recorded } = broker.inbox!
        for (const ids of [["a", "b"], ["c"], ["d"]]) {
          db.exec("BEGIN")
          yield* record(db, "q", ids)
          db.exec("COMMIT")
          yield* Effect.sleep(1000)
        }
        const ids = ["a", "b", "c", "d"]
        assert.deepStrictEqual([yield* prune(60_000, 10), yield* recorded("q", ids)], [0, ids])
        assert.deepStrictEqual([yield* prune(1500, 2), yield* recorded("q", ids)], [2, ["c", "d"]])
        assert.deepStrictEqual([yield* prune(1500, 10), yield* recorded("q", ids)], [1, ["d"]])
        assert.deepStrictEqual(yield* recorded("other", ids), [])
      })
    ))
})

describe("a transaction is refused at once", () => {
  it.each<readonly [string, (holding: Holding) => unknown, BrokerError.Reason, RegExp]>([
    [
      "that is something else",
      () => ({ prepare: 1 }),
      "Unsupported",
      /expected a transaction of node:sqlite.*Pass the/
    ],
    ["that has not begun", ({ db }) => db, "Unsupported", /no transaction is open\. Begin it before/],
    [
      "whose connection is closed",
      ({ db }) => {
        db.close()
        return db
      },
      "Unsupported",
      /no transaction is open/
    ],
    [
      "of another file",
      ({ driver, path }) => {
        const db = driver.open(`${path}.other`)
        db.exec("CREATE TABLE requeue_message (seq, queue); BEGIN")
        return db
      },
      "Unsupported",
      /is of .*\.other, and the queues are in .*Open the file of the queues as the main database/
    ],
    [
      "of another file that has attached the file of the queues",
      ({ path }) => {
        const db = new DatabaseSync(":memory:")
        db.exec(`ATTACH '${path}' AS queues; BEGIN`)
        return db
      },
      "Unsupported",
      /is of a database without a file/
    ],
    [
      "of a file that a newer adapter has migrated",
      ({ db }) => {
        db.exec(`UPDATE requeue_schema SET version = ${steps.length + 1}; BEGIN`)
        return db
      },
      "ConnectionFailed",
      /version 5 .*supports 4\. Install the version/
    ],
    [
      "that cannot write any more, because it has read before another one wrote",
      ({ db, path }) => {
        db.exec("BEGIN; SELECT count(*) FROM requeue_queue")
        db.prepare("SELECT count(*) FROM requeue_queue").get()
        new DatabaseSync(path).exec("INSERT INTO requeue_queue VALUES ('other')")
        return db
      },
      "Throttled",
      /locked\. Begin with BEGIN IMMEDIATE/
    ]
  ])("%s", (_, prepare, reason, message) =>
    run(
      Effect.gen(function* () {
        const held = yield* holding
        const transaction = prepare(held)
        for (const error of [errorOf(held.ack(transaction)), errorOf(held.publish(transaction))]) {
          assert.strictEqual(error.reason, reason)
          assert.match(error.message, message)
          assert.strictEqual(error.operation, "within")
        }
        assert.deepStrictEqual(yield* counts(held.broker), [0, 1, 0])
      })
    )
  )
})

describe("a transaction", () => {
  it("is refused a message for a missing queue that it must not create, and one that is too large", () =>
    run(
      Effect.gen(function* () {
        const { db, publish } = yield* holding
        db.exec("BEGIN IMMEDIATE")
        const missing = { ...outgoing("missing", "b"), create: false }
        const large = outgoing("sent", "b", new Uint8Array(16 * 2 ** 20 + 1))
        const reasons = [missing, large].map((message) => errorOf(publish(db, message)).reason)
        assert.deepStrictEqual(reasons, ["QueueMissing", "BodyTooLarge"])
      })
    ))

  it("goes on after its connection was closed and opened again", () =>
    run(
      Effect.gen(function* () {
        const { broker, db, publish } = yield* holding
        for (const id of ["b", "c"]) {
          db.exec("BEGIN IMMEDIATE")
          Effect.runSync(Effect.result(publish(db, outgoing("sent", id))))
          Effect.runSync(publish(db, outgoing("sent", id)))
          db.exec("COMMIT")
          db.close()
          db.open()
        }
        assert.strictEqual((yield* broker.admin.counts("sent")).ready, 3)
      })
    ))

  it("of a connection that was opened before the file had queues is one of this file", () =>
    run(
      Effect.gen(function* () {
        const [driver, path] = [VirtualDriver.make(), yield* newPath]
        const db = driver.open(path)
        db.exec("CREATE TABLE mine (a)")
        const { broker } = yield* openAt(path, driver)
        db.exec("BEGIN IMMEDIATE")
        yield* broker.publishWithin!(db, [outgoing("q", "a", undefined, 5000)])
        assert.deepStrictEqual(yield* counts(broker), [0, 0, 0])
        db.exec("COMMIT")
        assert.deepStrictEqual(yield* counts(broker), [0, 0, 1])
        db.close()
      })
    ))
})
