/** Files that cannot be queues, and files that stop working: typed errors with remedies, and nothing is lost. */
import * as fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { BrokerError, RetryPolicy, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { assert, describe, it } from "vitest"
import { node } from "../src/internal/client.ts"
import { blocked, free, migrate, steps, versionOf } from "../src/internal/connect/schema.ts"
import { operations } from "../src/internal/inspect/operations.ts"
import * as VirtualDriver from "./driver.ts"
import { counts, newPath, openAt, probe, run, send } from "./program.ts"

/** Returns the error of opening a file that `prepare` has made. It may return another path. */
const refusalOf = (prepare: (path: string, driver: VirtualDriver.VirtualDriver) => unknown) =>
  run(
    Effect.gen(function* () {
      const driver = VirtualDriver.make()
      const path = yield* newPath
      const other = prepare(path, driver)
      const opened = yield* Effect.result(openAt(typeof other === "string" ? other : path, driver))
      const error = Result.isFailure(opened) ? opened.failure : undefined
      assert.instanceOf(error, BrokerError.BrokerError)
      return error
    })
  )

const make = (path: string, version = steps): void => {
  const db = new DatabaseSync(path)
  migrate(db, version)
  db.close()
}

describe("a file is refused", () => {
  it.each<readonly [string, Parameters<typeof refusalOf>[0], RegExp]>([
    ["in a missing folder", (path) => `${path}/missing/queue.db`, /unable to open.*Create the folder/],
    ["that is no database", (path) => fs.writeFileSync(path, "x".repeat(5000)), /not a SQLite database/],
    ["of a newer adapter", (path) => make(path, [...steps, "SELECT 1"]), /version 5.*supports 4.*Install the version/],
    [
      "whose tables were changed",
      (path) => {
        make(path)
        new DatabaseSync(path).exec("DROP TABLE requeue_schema")
      },
      /already exists.*restore a backup, or drop all tables named requeue_.*restart/
    ],
    ["on NFS", (_, driver) => Object.assign(driver, { fileSystem: () => 0x6969 }), /network file system.*local disk/],
    ["on SMB", (_, driver) => Object.assign(driver, { fileSystem: () => -11317950 }), /network file system/]
  ])("%s", async (_, prepare, message) => {
    const error = await refusalOf(prepare)
    assert.match(error.message, message)
    assert.isTrue(error.isMisconfigured)
  })

  it("that is damaged", async () => {
    const error = await refusalOf((path) => {
      make(path)
      const file = fs.openSync(path, "r+")
      fs.writeSync(file, new Uint8Array(3000).fill(7), 0, 3000, 100)
      fs.closeSync(file)
    })
    assert.match(error.message, /malformed.*restore a backup/)
  })

  it("that may not be written", async () => {
    const error = await refusalOf((path, driver) => {
      new DatabaseSync(path).exec("PRAGMA journal_mode = WAL; CREATE TABLE mine (a)")
      Object.assign(driver, { open: () => new DatabaseSync(path, { readOnly: true }) })
    })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.message, /Give the process write permission/)
  })
})

it("a file that cannot be read for a while is used again afterwards", () =>
  run(
    Effect.gen(function* () {
      const driver = VirtualDriver.make()
      const path = yield* newPath
      const [{ broker }, { broker: other }] = [yield* openAt(path, driver), yield* openAt(path, driver)]
      const { inbox } = yield* probe(broker, 2)
      const fail = (sql: string) => {
        if (sql.startsWith("PRAGMA")) throw VirtualDriver.sqliteError(10, "disk I/O error")
      }
      driver.faults = { statement: fail, commit: () => {} }
      yield* send(other, ["a"])
      yield* Effect.sleep(6000)
      driver.faults = undefined
      yield* Effect.sleep(6000)
      yield* send(other, ["b"])
      yield* Effect.sleep(1)
      assert.deepStrictEqual(
        inbox.map(({ metadata }) => metadata.id),
        ["a", "b"]
      )
      assert.strictEqual(broker.connection().state, "up")
    })
  ))

describe("a file of an older adapter", () => {
  it("is migrated in one transaction, and keeps its messages", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        yield* Effect.scoped(Effect.flatMap(openAt(path, VirtualDriver.make()), ({ broker }) => send(broker, ["a"])))
        const db = new DatabaseSync(path)
        assert.throws(() => migrate(db, [...steps, "CREATE TABLE more (a); SELECT nonsense"]), /nonsense/)
        assert.strictEqual(versionOf(db), steps.length)
        migrate(db, [...steps, "ALTER TABLE requeue_message ADD COLUMN more TEXT"])
        assert.strictEqual(versionOf(db), steps.length + 1)
        assert.strictEqual(db.prepare("SELECT more FROM requeue_message").all().length, 1)
        db.close()
      })
    ))

  it("has messages without keys, whose leases are kept", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        make(path, steps.slice(0, 2))
        const db = new DatabaseSync(path)
        db.exec(`INSERT INTO requeue_queue VALUES ('q');
          INSERT INTO requeue_message (queue, at, body) VALUES ('q', 0, x'01'), ('q', 0, x'02');
          UPDATE requeue_message SET leased = 60000000000000 WHERE seq = 1`)
        const { broker } = yield* openAt(path, VirtualDriver.make())
        assert.deepStrictEqual(yield* counts(broker), [1, 1, 0])
        db.close()
      })
    ))

  it("may have tables of the program before and after", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        const db = new DatabaseSync(path)
        db.exec("CREATE TABLE accounts (id); PRAGMA user_version = 7")
        const { broker } = yield* openAt(path, VirtualDriver.make())
        yield* send(broker, ["a"])
        assert.strictEqual(db.prepare("PRAGMA user_version").get()?.["user_version"], 7)
        db.close()
      })
    ))
})

describe("a file that another program locks", () => {
  const locked = Effect.gen(function* () {
    const path = yield* newPath
    const { broker } = yield* openAt(path, VirtualDriver.make(), "?timeout=1s")
    const other = new DatabaseSync(path)
    yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
    other.exec("BEGIN IMMEDIATE")
    return { broker, other, path }
  })

  it("is opened by another process", () =>
    run(
      Effect.gen(function* () {
        const { path } = yield* locked
        const { broker } = yield* openAt(path, VirtualDriver.make(), "?timeout=100")
        assert.deepStrictEqual(yield* counts(broker), [0, 0, 0])
      })
    ))

  it("makes sends wait", () =>
    run(
      Effect.gen(function* () {
        const { broker, other } = yield* locked
        const sending = yield* Effect.forkChild(send(broker, ["a"]))
        yield* Effect.sleep(500)
        assert.isUndefined(sending.pollUnsafe())
        other.exec("COMMIT")
        yield* Effect.sleep(20)
        assert.isDefined(sending.pollUnsafe())
        assert.deepStrictEqual(yield* counts(broker), [1, 0, 0])
      })
    ))

  it("fails sends and settlements after the timeout, and nothing has happened", () =>
    run(
      Effect.gen(function* () {
        const { broker, other } = yield* locked
        other.exec("COMMIT")
        yield* send(broker, ["a"])
        const { inbox, settleAll } = yield* probe(broker, 1)
        yield* Effect.sleep(10)
        const [delivery] = inbox
        other.exec("BEGIN IMMEDIATE")
        const error = yield* Effect.flip(send(broker, ["b"]))
        assert.match(error.message, /Throttled: database is locked. End the program.*raise timeout/)
        assert.deepStrictEqual(yield* settleAll(Settlement.Ack, [delivery!]), ["transient Throttled"])
        other.exec("COMMIT")
        assert.deepStrictEqual(yield* counts(broker), [0, 1, 0])
        assert.deepStrictEqual(yield* settleAll(Settlement.Ack, [delivery!]), [])
        assert.deepStrictEqual(yield* counts(broker), [0, 0, 0])
      })
    ))
})

describe("a disk that is full", () => {
  it("fails sends with a remedy, keeps what was sent, and goes on when there is room", () =>
    run(
      Effect.gen(function* () {
        const { broker, store } = yield* openAt(yield* newPath, VirtualDriver.make())
        const limit = (pages: number) =>
          store.read({ operation: "test" }, ({ db }) => db.exec(`PRAGMA max_page_count = ${pages}`))
        yield* send(broker, ["a"])
        yield* limit(20)
        const body = new Uint8Array(1_000_000)
        const [large, small] = yield* Effect.all(
          [Effect.result(send(broker, ["b"], body)), Effect.result(send(broker, ["c"]))],
          {
            concurrency: 2
          }
        )
        assert.match(Result.isFailure(large) ? large.failure.message : "", /Throttled: .*full. Free space on the disk/)
        assert.isTrue(Result.isSuccess(small))
        yield* limit(100_000)
        yield* send(broker, ["b"], body)
        assert.deepStrictEqual(yield* counts(broker), [3, 0, 0])
      })
    ))
})

describe("rows of other programs", () => {
  const stored = (db: DatabaseSync) =>
    db
      .prepare("SELECT body, leased FROM requeue_message ORDER BY seq")
      .all()
      .map(
        ({ body, leased }) => `${String(body)} ${leased === free ? "free" : leased === blocked ? "blocked" : "leased"}`
      )

  it("need only a key to be in order, and any program that removes one frees the next", () => {
    const db = new DatabaseSync(":memory:")
    migrate(db)
    const insert = "INSERT INTO requeue_message (queue, at, key, body) VALUES"
    db.exec(`${insert} ('q', 0, 'k', x'01'), ('q', 0, 'k', x'02'), ('q', 0, 'other', x'03'), ('r', 0, 'k', x'04')`)
    db.exec(`${insert} ('q', 0, 'k', x'05'), ('q', 0, NULL, x'06')`)
    assert.deepStrictEqual(stored(db), ["1 free", "2 blocked", "3 free", "4 free", "5 blocked", "6 free"])
    db.exec("UPDATE requeue_message SET leased = 1000 WHERE seq = 1")
    db.exec("DELETE FROM requeue_message WHERE seq = 2")
    assert.deepStrictEqual(stored(db), ["1 leased", "3 free", "4 free", "5 blocked", "6 free"])
    db.exec("DELETE FROM requeue_message WHERE seq = 1")
    assert.deepStrictEqual(stored(db), ["3 free", "4 free", "5 free", "6 free"])
    db.exec("DELETE FROM requeue_message")
    assert.deepStrictEqual(stored(db), [])
  })
})

it.each(["seq", "at", "leased", "token", "deliveries", "position"])(
  "no row can have a number in %s that JavaScript cannot hold",
  (column) => {
    const db = new DatabaseSync(":memory:")
    migrate(db)
    const store = (value: bigint) =>
      db.exec(`INSERT INTO requeue_message (queue, body, ${column === "at" ? "" : "at, "}${column})
      VALUES ('q', x'', ${column === "at" ? "" : "1, "}${value})`)
    store(7n)
    assert.throws(() => store(2n ** 53n), /CHECK constraint failed/)
  }
)

it("a relative path is resolved once", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const driver = { ...VirtualDriver.make(), resolve: (name: string) => `${path}.${name}` }
      const { store } = yield* openAt("file:name", driver)
      assert.strictEqual(store.settings.path, `${path}.file:name`)
      assert.strictEqual(node.resolve("file:name"), join(process.cwd(), "file:name"))
    })
  ))

it("the log of a file behind a link is found next to the file", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const link = yield* newPath
      make(path)
      const db = new DatabaseSync(path)
      db.exec("PRAGMA journal_mode = WAL; CREATE TABLE mine (a)")
      fs.symlinkSync(path, link)
      const log = node.log(link)
      yield* Effect.promise(log.flush)
      yield* Effect.promise(log.close)
    })
  ))

it("a plan changes nothing in a file", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      new DatabaseSync(path).exec("CREATE TABLE mine (a)")
      const before = fs.readFileSync(path)
      const operator = yield* operations.operate(new URL(`sqlite:${path}`))
      const { objects } = yield* operator.inspect({ queue: "q", retry: RetryPolicy.make() })
      assert.deepStrictEqual(
        objects.map(({ state }) => state),
        ["missing", "missing"]
      )
      assert.deepStrictEqual(fs.readFileSync(path), before)
    })
  ))

it("a removed log gets no more sends", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const { broker } = yield* openAt(path, VirtualDriver.make())
      yield* send(broker, ["a"])
      fs.rmSync(`${path}-wal`)
      yield* send(broker, ["b"])
      const { broker: other } = yield* openAt(path, VirtualDriver.make())
      assert.deepStrictEqual(yield* counts(other), [2, 0, 0])
    })
  ))

it("after a backup was restored, a delivery from before settles no other message", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const driver = VirtualDriver.make()
      const [{ broker }, { broker: other }] = [yield* openAt(path, driver), yield* openAt(path, driver)]
      yield* send(broker, ["a"])
      const { settleAll } = yield* probe(broker, 1)
      yield* Effect.sleep(10)
      // As the backup was made before the send, the next message gets the same number.
      const db = driver.open(path)
      yield* Effect.addFinalizer(() => Effect.sync(() => db.close()))
      db.exec("BEGIN IMMEDIATE; DELETE FROM requeue_message; DELETE FROM sqlite_sequence")
      db.exec("COMMIT")
      yield* probe(other, 1)
      yield* send(other, ["b"])
      yield* Effect.sleep(10)
      assert.deepStrictEqual(yield* settleAll(Settlement.Ack), ["lost LeaseLost"])
      assert.deepStrictEqual(yield* counts(broker), [0, 1, 0])
    })
  ))

describe("a file that is replaced under a running broker", () => {
  it("gets no more sends", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        const { broker } = yield* openAt(path, VirtualDriver.make())
        yield* send(broker, ["a"])
        for (const suffix of ["", "-wal", "-shm"]) fs.renameSync(path + suffix, `${path}.old${suffix}`)
        yield* send(broker, ["b"])
        assert.deepStrictEqual(yield* counts(broker), [1, 0, 0])
        const { broker: other } = yield* openAt(`${path}.old`, VirtualDriver.make())
        assert.deepStrictEqual(yield* counts(other), [1, 0, 0])
      })
    ))

  it("is opened again: sends go to the file that has the path", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        const { broker } = yield* openAt(path, VirtualDriver.make())
        yield* send(broker, ["a"])
        const { inbox, identify, settleAll } = yield* probe(broker, 1)
        yield* Effect.sleep(10)
        const name = identify(inbox[0]!)
        for (const suffix of ["", "-wal", "-shm"]) fs.renameSync(path + suffix, `${path}.old${suffix}`)
        yield* Effect.sleep(10_000)
        assert.strictEqual(broker.connection().state, "up")
        assert.deepStrictEqual(yield* settleAll(Settlement.Ack), ["lost LeaseLost"])
        yield* send(broker, ["b"])
        yield* Effect.sleep(10)
        assert.deepStrictEqual(
          inbox.map(({ metadata }) => metadata.id),
          ["b"]
        )
        assert.notStrictEqual(identify(inbox[0]!), name)
      })
    ))
})
