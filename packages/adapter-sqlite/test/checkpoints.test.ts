/** The log stays short, and the event loop never waits for a checkpoint. */
import * as fs from "node:fs"
import { DatabaseSync } from "node:sqlite"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import type { Log } from "../src/internal/log.ts"
import * as Disk from "./disk.ts"
import * as VirtualDriver from "./driver.ts"
import { counts, newPath, openAt, probe, run, send } from "./program.ts"

/** Bytes of a page in the log. */
const page = 4096 + 24

/** A body of 123 pages. */
const body = new Uint8Array(500_000)

const sizeOf = (path: string): number => fs.statSync(`${path}-wal`).size / page

/** A driver that counts the commits which copy pages, or begin the log: these wait for the disk. The first one is the schema's. */
const counting = () => {
  const disk = Disk.make()
  const driver = VirtualDriver.make(disk)
  const result = { driver, waits: 0 }
  const open = driver.open
  Object.assign(driver, {
    open: (path: string) => {
      const db = open(path)
      const exec = db.exec.bind(db)
      db.exec = (sql) => {
        const before = disk.checkpointOf(path)
        exec(sql)
        if (sql === "COMMIT" && disk.checkpointOf(path) !== before) result.waits++
      }
      return db
    }
  })
  return result
}

/** A driver whose thread does something else. */
const broken = (driver: VirtualDriver.VirtualDriver, checkpoint: Log["checkpoint"]) => ({
  ...driver,
  log: (path: string) => ({ ...driver.log(path), checkpoint })
})

/** The emulated disk reads the files with each flush, so sends do not wait for one. */
const durability = "?durability=normal"

/** Sends 2,500 pages in 20 transactions. */
const fill = (broker: Parameters<typeof send>[0]) =>
  Effect.forEach(Array.from({ length: 20 }), () => send(broker, ["a"], body))

it("a thread copies a long log into the file, and begins the log again", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const counted = counting()
      const { broker } = yield* openAt(path, counted.driver, durability)
      yield* fill(broker)
      assert.isBelow(sizeOf(path), 1200)
      assert.strictEqual(counted.waits, 1)
      assert.deepStrictEqual(yield* counts(broker), [20, 0, 0])
    })
  ))

it("a reader keeps the log; after its end, the log begins again", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const counted = counting()
      const { broker } = yield* openAt(path, counted.driver, durability)
      yield* send(broker, ["a"])
      const reader = new DatabaseSync(path)
      reader.exec("BEGIN; SELECT * FROM requeue_message")
      yield* fill(broker)
      const size = sizeOf(path)
      assert.isAbove(size, 2450)
      reader.close()
      yield* Effect.sleep(200)
      yield* send(broker, ["a"])
      yield* fill(broker)
      assert.isBelow(sizeOf(path), size + 200)
      assert.strictEqual(counted.waits, 1)
    })
  ))

it("a checkpoint that has failed is repeated after a pause", () =>
  run(
    Effect.gen(function* () {
      const driver = VirtualDriver.make()
      let attempts = 0
      const checkpoint = () => Promise.reject(new Error(`attempt ${++attempts}`))
      const { broker } = yield* openAt(yield* newPath, broken(driver, checkpoint), durability)
      yield* fill(broker)
      assert.strictEqual(attempts, 1)
      yield* Effect.sleep(1100)
      yield* send(broker, ["a"])
      assert.strictEqual(attempts, 2)
    })
  ))

it("SQLite itself bounds a log that no thread copies", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const driver = VirtualDriver.make()
      const checkpoint = () => Promise.reject(new Error("no threads"))
      const { broker } = yield* openAt(path, broken(driver, checkpoint), durability)
      yield* Effect.repeat(fill(broker), { times: 4 })
      assert.isBelow(sizeOf(path), 10_200)
    })
  ))

it("a lease writes nothing of a large body", () =>
  run(
    Effect.gen(function* () {
      const path = yield* newPath
      const { broker } = yield* openAt(path, VirtualDriver.make(), durability)
      yield* send(broker, ["a"], body)
      const before = sizeOf(path)
      const { inbox } = yield* probe(broker, 1)
      yield* Effect.sleep(10)
      assert.strictEqual(inbox.length, 1)
      assert.isBelow(sizeOf(path) - before, 10)
    })
  ))
