/** SQLite in virtual time, with a harness that reads the file by its own connection and SQL. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Harness } from "@requeue/conformance"
import { Broker, type Delivery } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { SqliteOptions } from "../src/index.ts"
import { open } from "../src/internal/broker.ts"
import { isFree, isLeased } from "../src/internal/connect/schema.ts"
import { isLocked } from "../src/internal/toBrokerError.ts"
import * as Disk from "./disk.ts"
import * as VirtualDriver from "./driver.ts"

/** Milliseconds until the emulated disk has written what it was given. */
const flushTime = 3

/** A new folder, which lasts as long as the scope. */
const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true }))
)

/** Whether a statement belongs to an operation, and concerns a queue. */
const concerns = (
  operation: Harness.Operation,
  sql: string,
  values: ReadonlyArray<unknown>,
  isOf: (value: unknown) => boolean,
  queueOf: (seq: unknown) => unknown
): boolean => {
  const isClaim = sql.startsWith("SELECT seq, ?, deliveries")
  const isExtension = sql.startsWith("UPDATE requeue_message SET leased = ? WHERE seq")
  const isCopy = sql.startsWith("INSERT INTO requeue_message") || sql.startsWith("UPDATE requeue_message SET queue")
  switch (operation) {
    case "publish":
      return isCopy && isOf(values[0])
    case "receive":
      return isClaim && values.some(isOf)
    case "extend":
      return isExtension && isOf(queueOf(values[1]))
    case "settle":
      return !isClaim && !isExtension && sql.includes("seq = ? AND token = ?") && isOf(queueOf(values.at(-2)))
  }
}

const checkUndamaged = (db: Pick<DatabaseSync, "prepare">): void => {
  const found = db.prepare("PRAGMA integrity_check").all()
  if (found[0]?.["integrity_check"] !== "ok") throw new Error(`the file is damaged: ${JSON.stringify(found)}`)
}

/** A harness for a file, or for a database without one. */
export const layer = (url: (folder: string) => string) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const disk = Disk.make()
      const settings = Result.getOrThrow(SqliteOptions.decode({ url: url(yield* folder) }))
      const isFile = settings.path !== SqliteOptions.memory
      const clock = yield* Clock.Clock
      const run = Effect.runPromiseWith(yield* Effect.context())
      /** Starts the machine. */
      const boot = () => Object.assign(VirtualDriver.make(disk), { flush: () => run(Effect.sleep(flushTime)) })
      let driver = boot()
      const { broker, store } = yield* open(settings, driver)
      const now = () => Math.floor(clock.currentTimeMillisUnsafe())
      let queues = 0

      const sql = <A>(run: (db: Pick<DatabaseSync, "prepare" | "exec">) => A) =>
        isFile
          ? Effect.acquireUseRelease(
              Effect.sync(() => driver.open(settings.path)),
              (db) => Effect.sync(() => run(db)),
              (db) => Effect.sync(() => db.close())
            )
          : Effect.orDie(store.read({ operation: "harness" }, ({ db }) => run(db)))

      const insert = "INSERT INTO requeue_message (queue, at, headers, body) VALUES (?, ?, ?, ?)"
      const publishRaw = (queue: string, body: Uint8Array, headers: Delivery.Delivery["headers"]) =>
        Effect.map(
          sql((db) => {
            db.exec("BEGIN IMMEDIATE")
            db.prepare("INSERT OR IGNORE INTO requeue_queue VALUES (?)").run(queue)
            db.prepare(insert).run(queue, now(), JSON.stringify(headers), body)
            db.exec("COMMIT")
          }),
          // Without a file, no other connection can publish, and none is noticed.
          () => (isFile ? undefined : store.wake(queue))
        )

      const next = Effect.suspend(() => Effect.map(open(settings, driver), (other) => other.broker))
      const reboot = (end: () => void) =>
        Effect.suspend(() => {
          end()
          driver = boot()
          return Effect.tap(next, () => sql(checkUndamaged))
        })

      const deadLetters = (queue: string) =>
        sql((db) =>
          db
            .prepare(
              `SELECT *, fair_by AS fairBy FROM requeue_message WHERE queue = ? AND ${isFree} AND at <= ? ORDER BY at, seq`
            )
            .all(queue, now())
            .map((row): Delivery.Delivery => {
              const stored = row as unknown as SqlMessage.Row // The columns of the table.
              return {
                ...SqlMessage.toDelivery({ ...stored, deliveries: stored.deliveries + 1 }, "sqlite"),
                receipt: undefined
              }
            })
        )

      const pending = (queue: string) =>
        sql((db) => {
          const count = (where: string) =>
            Number(
              db
                .prepare(`SELECT count(*) AS n FROM requeue_message WHERE queue = ? AND ? > 0 AND ${where}`)
                .get(queue, now())?.["n"]
            )
          const time = now()
          return {
            ready: count(`(${isFree} AND at <= ${time} OR leased <= ${time})`),
            inFlight: count(`${isLeased} AND leased > ${time}`),
            delayed: count(`${isFree} AND at > ${time}`)
          }
        })

      const queueOf = (db: Pick<DatabaseSync, "prepare">) => (seq: unknown) =>
        db.prepare("SELECT queue FROM requeue_message WHERE seq = ?").get(Number(seq))?.["queue"]

      /** The disk is full for one statement, or the commit of its transaction fails. A library has no answer that could be lost. */
      const failNext: Harness.FailNext = (operation, failure, queue) => {
        if (failure === "lostAnswer" || failure === "lateAnswer") return undefined
        return Effect.gen(function* () {
          const own = yield* Effect.acquireRelease(
            Effect.sync(() => (isFile ? new DatabaseSync(disk.at(settings.path)) : undefined)),
            (db) => Effect.sync(() => db?.close())
          )
          let [isDue, happened] = [false, false]
          const isOf = (value: unknown) => value === queue || value === `${queue}.dlq`
          const whose = own === undefined ? () => queue : queueOf(own)
          const end = () => {
            driver.faults = undefined
            happened = true
          }
          driver.faults = {
            statement: (statement, values) => {
              if (!concerns(operation, statement, values, isOf, whose)) return
              isDue = true
              if (failure !== "refused") return
              end()
              throw VirtualDriver.sqliteError(13, "database or disk is full")
            },
            commit: () => {
              if (!isDue) return
              end()
              throw VirtualDriver.sqliteError(10, "disk I/O error")
            }
          }
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              driver.faults = undefined
            })
          )
          return () => happened
        })
      }

      const deleteQueue = (queue: string) =>
        sql((db) => {
          db.exec("BEGIN IMMEDIATE")
          db.prepare("DELETE FROM requeue_message WHERE queue = ?").run(queue)
          db.prepare("DELETE FROM requeue_queue WHERE name = ?").run(queue)
          db.exec("COMMIT")
        })

      /** A transaction of another connection. It waits for its turn to write. */
      const begin = Effect.gen(function* () {
        const db = yield* Effect.acquireRelease(
          Effect.sync(() => driver.open(settings.path)),
          (opened) => Effect.sync(() => opened.close())
        )
        yield* Effect.retry(Effect.try({ try: () => db.exec("BEGIN IMMEDIATE"), catch: (error) => error }), {
          schedule: Schedule.spaced(1),
          while: isLocked
        })
        const insert = db.prepare("INSERT INTO mine VALUES (?)")
        return {
          value: db,
          write: (row: string) => Effect.sync(() => insert.run(row)),
          commit: Effect.sync(() => db.exec("COMMIT")),
          rollback: Effect.sync(() => db.exec("ROLLBACK"))
        }
      })
      if (isFile) yield* sql((db) => db.exec("CREATE TABLE mine (row TEXT) STRICT"))
      const rows = sql((db) =>
        db
          .prepare("SELECT row FROM mine")
          .all()
          .map(({ row }) => String(row))
      )

      const harness = Harness.Harness.of({
        name: isFile ? "sqlite" : "sqlite without a file",
        uniqueQueue: (base) =>
          Effect.gen(function* () {
            const name = `${base}-${++queues}`
            yield* sql((db) => {
              db.prepare("INSERT INTO requeue_queue VALUES (?)").run(name)
            })
            return name
          }),
        publishRaw,
        deadLetters,
        pending,
        // A file has no connections that could break.
        cutConnections: undefined,
        restart: isFile ? Effect.andThen(Effect.sync(store.reopen), Effect.sleep(200)) : undefined,
        crash: isFile ? reboot(disk.crash) : undefined,
        // A power cut may damage a file that is never synced.
        powerCut: isFile && settings.durability !== "off" ? reboot(disk.powerCut) : undefined,
        another: isFile ? next : undefined,
        failNext,
        deleteQueue,
        foreignQueue: undefined,
        transactions: isFile ? { begin, rows } : undefined,
        lateness: 0,
        settleTime: 0
      })
      return Context.make(Broker.Broker, broker).pipe(Context.add(Harness.Harness, harness))
    })
  )

/** How the suite runs. */
export const variants: Readonly<Record<string, ReturnType<typeof layer>>> = {
  "sqlite without a file": layer(() => "sqlite::memory:?lease=2000"),
  sqlite: layer((path) => `sqlite:${path}/queue.db?lease=2000`)
}

/** Those that survive crashes of the process only. */
export const lessDurable: Readonly<Record<string, ReturnType<typeof layer>>> = {
  "sqlite, normal": layer((path) => `sqlite:${path}/queue.db?lease=2000&durability=normal`),
  "sqlite, off": layer((path) => `sqlite:${path}/queue.db?lease=2000&durability=off`)
}
