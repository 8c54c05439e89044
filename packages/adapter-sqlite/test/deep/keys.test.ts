import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { KeyedWork } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { assert, it } from "vitest"
import { adapter } from "../../src/index.ts"

const program = new URL("../keyWorker.ts", import.meta.url).pathname

const [keys, each, kills] = [1000, 100, 20]

it(
  "100,000 messages of 1,000 keys keep their order through failures, parked letters, redrives and 20 kills",
  { timeout: 1_600_000 },
  async () => {
    const folder = fs.mkdtempSync(join(tmpdir(), "requeue-keys-"))
    const path = join(folder, "queue.db")
    const db = new DatabaseSync(path, { timeout: 60_000 })
    db.exec("CREATE TABLE done (seq INTEGER PRIMARY KEY, key TEXT, n INTEGER); CREATE TABLE repaired (id TEXT)")
    const requeue = await connect(`sqlite:${path}?durability=normal`, { adapters: [adapter], logger: false })
    const repair = db.prepare("INSERT INTO repaired VALUES (?)")
    try {
      const redriven = await KeyedWork.run({
        requeue,
        queue: "work",
        deadLetterQueue: "work.dlq",
        keys,
        each,
        kills,
        launch: () => spawn(process.execPath, ["--conditions=@requeue/source", program, path], { stdio: "inherit" }),
        count: () => Number(db.prepare("SELECT max(seq) AS n FROM done").get()?.["n"] ?? 0),
        repair: (ids) => ids.forEach((id) => repair.run(id))
      })
      const done = db.prepare("SELECT key, n FROM done ORDER BY seq").all()
      assert.deepStrictEqual(KeyedWork.inversions(done as never).slice(0, 10), [])
      assert.lengthOf(done, keys * each)
      assert.isAbove(redriven, keys)
      assert.deepStrictEqual(await requeue.counts("work"), { ready: 0, inFlight: 0, delayed: 0 })
      await requeue.close()
    } finally {
      db.close()
      fs.rmSync(folder, { recursive: true })
    }
  }
)
