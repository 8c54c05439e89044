import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { start } from "@requeue/brokers"
import { KeyedWork } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { assert, it } from "vitest"
import { adapter } from "../../src/index.ts"

const program = new URL("../keyWorker.ts", import.meta.url).pathname

const [keys, each, kills] = [1000, 20, 20]

it(
  "20,000 messages of 1,000 groups keep their order through failures, dead letters, redrives and 20 kills",
  { timeout: 1_600_000 },
  async () => {
    const folder = fs.mkdtempSync(join(tmpdir(), "requeue-keys-"))
    const path = join(folder, "done.db")
    const db = new DatabaseSync(path, { timeout: 60_000 })
    db.exec(`PRAGMA journal_mode = WAL; CREATE TABLE repaired (id TEXT);
      CREATE TABLE done (seq INTEGER PRIMARY KEY, key TEXT, n INTEGER); CREATE INDEX done_key ON done (key, n)`)
    const server = await start("sqs", { version: "fauxqs" })
    const requeue = await connect(server.url, { adapters: [adapter], logger: false })
    const repair = db.prepare("INSERT INTO repaired VALUES (?)")
    try {
      const redriven = await KeyedWork.run({
        requeue,
        queue: "work.fifo",
        deadLetterQueue: "work.fifo.dlq",
        keys,
        each,
        kills,
        // The server becomes slow.
        backlog: 10,
        launch: () =>
          spawn(process.execPath, ["--conditions=@requeue/source", program, server.url, path], { stdio: "inherit" }),
        count: () => Number(db.prepare("SELECT count(*) AS n FROM (SELECT DISTINCT key, n FROM done)").get()?.["n"]),
        repair: (ids) => ids.forEach((id) => repair.run(id))
      })
      const done = db.prepare("SELECT key, n FROM done ORDER BY seq").all() as never
      assert.deepStrictEqual(KeyedWork.inversions(done, { parks: false }).slice(0, 10), [])
      assert.isAtLeast(redriven, keys)
      await requeue.close()
    } finally {
      db.close()
      await server.dispose()
      fs.rmSync(folder, { recursive: true })
    }
  }
)
