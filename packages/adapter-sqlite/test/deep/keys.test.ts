import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { connect } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import { assert, it } from "vitest"
import { adapter } from "../../src/index.ts"

const [keys, each, kills] = [1000, 100, 20]
const total = keys * each

const program = new URL("../keyWorker.ts", import.meta.url).pathname

const start = (path: string): ChildProcess =>
  spawn(process.execPath, ["--conditions=@requeue/source", program, path], { stdio: ["ignore", "ignore", "inherit"] })

const kill = async (child: ChildProcess): Promise<void> => {
  const closed = once(child, "close")
  child.kill("SIGKILL")
  await closed
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

it(
  "100,000 messages of 1,000 keys keep their order through failures, parked letters, redrives and 20 kills",
  { timeout: 1_200_000 },
  async () => {
    const folder = fs.mkdtempSync(join(tmpdir(), "requeue-keys-"))
    const path = join(folder, "queue.db")
    const db = new DatabaseSync(path, { timeout: 60_000 })
    db.exec("CREATE TABLE done (seq INTEGER PRIMARY KEY, key TEXT, n INTEGER); CREATE TABLE repaired (id TEXT)")
    const requeue = await connect(`sqlite:${path}?durability=normal`, { adapters: [adapter], logger: false })
    const letters = deadLetters(requeue, "work.dlq")
    const doneOf = () => Number(db.prepare("SELECT max(seq) AS n FROM done").get()?.["n"] ?? 0)
    const repair = db.prepare("INSERT INTO repaired VALUES (?)")
    let workers = [start(path), start(path), start(path)]
    let redriven = 0
    const send = async () => {
      for (let n = 0; n < each; n++) {
        const entries = Array.from({ length: keys }, (_, index) => ({ body: { n }, key: `k${index}` }))
        await requeue.sendBatch("work", entries)
      }
    }
    const killAll = async () => {
      for (let count = 1; count <= kills; count++) {
        while (doneOf() < (count * total) / (kills + 1)) await pause(20)
        const [first, ...others] = workers
        await kill(first!)
        workers = [...others, start(path)]
      }
    }
    const redriveAll = async () => {
      while (!(await letters.exists())) await pause(20)
      while (doneOf() < total) {
        const audit = (some: ReadonlyArray<{ readonly id: string }>) => some.forEach(({ id }) => repair.run(id))
        redriven += (await letters.redrive({ audit, maxRedrives: 1000 })).redriven
        await pause(200)
      }
    }
    try {
      await Promise.all([send(), killAll(), redriveAll()])
      const inOrder = new Map<string, number>()
      const inversions: Array<string> = []
      for (const { key, n } of db.prepare("SELECT key, n FROM done ORDER BY seq").iterate()) {
        const expected = inOrder.get(String(key)) ?? 0
        if (n !== expected) inversions.push(`${String(key)}: ${Number(n)} instead of ${expected}`)
        inOrder.set(String(key), expected + 1)
      }
      assert.deepStrictEqual(inversions.slice(0, 10), [])
      assert.strictEqual(inOrder.size, keys)
      assert.isTrue([...inOrder.values()].every((count) => count === each))
      assert.isAbove(redriven, keys)
      assert.deepStrictEqual(await requeue.counts("work"), { ready: 0, inFlight: 0, delayed: 0 })
      await requeue.close()
    } finally {
      for (const child of workers) await kill(child)
      db.close()
      fs.rmSync(folder, { recursive: true })
    }
  }
)
