/** The thread that copies logs. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, assert, beforeEach, it } from "vitest"
import { node } from "../../src/internal/log.ts"

let path = ""

beforeEach(() => {
  path = join(fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-")), "queue.db")
})

afterEach(() => fs.rmSync(join(path, ".."), { recursive: true }))

/** How often the log has begun again. https://www.sqlite.org/fileformat2.html#walformat */
const restarts = (): number => fs.readFileSync(`${path}-wal`).readUInt32BE(12)

const open = (): DatabaseSync => {
  const db = new DatabaseSync(path)
  db.exec("PRAGMA journal_mode = WAL; PRAGMA user_version = 7; CREATE TABLE mine (a)")
  return db
}

it("copies the log and begins it again, and is the last to close the file", async () => {
  const db = open()
  const log = node(path)
  assert.deepStrictEqual([log.has(1), log.has(3), log.has(1000)], [true, true, false])
  const before = restarts()
  assert.isTrue(await log.checkpoint(1))
  assert.deepStrictEqual([log.has(1), log.has(2), restarts()], [true, false, before + 1])
  assert.strictEqual(db.prepare("PRAGMA user_version").get()?.["user_version"], 7)
  db.close()
  assert.isTrue(fs.existsSync(`${path}-wal`))
  await log.close()
  assert.isFalse(fs.existsSync(`${path}-wal`))
})

it("leaves a log that another process has begun again", async () => {
  const db = open()
  const log = node(path)
  const before = restarts()
  assert.isTrue(await log.checkpoint(1000))
  assert.strictEqual(restarts(), before)
  await log.close()
  db.close()
})

it("leaves the log to a reader", async () => {
  const [db, reader] = [open(), new DatabaseSync(path)]
  const log = node(path)
  reader.exec("BEGIN; SELECT * FROM mine")
  db.exec("INSERT INTO mine VALUES (1)")
  const before = restarts()
  assert.isFalse(await log.checkpoint(1))
  assert.strictEqual(restarts(), before)
  reader.exec("COMMIT")
  assert.isTrue(await log.checkpoint(1))
  await log.close()
  for (const each of [db, reader]) each.close()
})

it("a thread that cannot open the file fails without creating it, and the next one works", async () => {
  const log = node(path)
  const error = await log.checkpoint(1).catch((cause: unknown) => cause)
  assert.match(String(error), /unable to open/)
  assert.isFalse(fs.existsSync(path))
  const db = open()
  assert.isTrue(await log.checkpoint(1))
  await log.close()
  db.close()
})
