import { spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { ShareLimits } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { assert, describe, it } from "vitest"
import { adapter } from "../../src/index.ts"

interface Run {
  readonly fairBy: string
  readonly begin: number
  readonly end: number
}

const program = new URL("../shareWorker.ts", import.meta.url).pathname

const [processes, shares, each] = [2, 5, 20]

interface Handled {
  readonly runs: ReadonlyArray<Run>
  /** The share and the time of each delivery that counts for a rate. */
  readonly delivered: ReadonlyArray<{ readonly fairBy: string; readonly at: number }>
}

/** Records each change of the table of deliveries. */
const recording = `CREATE TABLE recorded (fair_by, at, count);
  CREATE TRIGGER inserted AFTER INSERT ON requeue_delivered BEGIN
    INSERT INTO recorded VALUES (NEW.fair_by, NEW.at, NEW.count); END;
  CREATE TRIGGER updated AFTER UPDATE ON requeue_delivered BEGIN
    INSERT INTO recorded VALUES (NEW.fair_by, NEW.at, NEW.count - OLD.count); END`

/** Runs consumers with limits in several processes until all messages are handled. */
const handle = async (limits: object): Promise<Handled> => {
  const folder = fs.mkdtempSync(join(tmpdir(), "requeue-shares-"))
  const path = join(folder, "queue.db")
  const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
  const db = new DatabaseSync(path, { timeout: 60_000 })
  db.exec(recording)
  const logs = Array.from({ length: processes }, (_, index) => join(folder, `log-${index}`))
  const workers = logs.map((log) =>
    spawn(process.execPath, ["--conditions=@requeue/source", program, path, log, JSON.stringify(limits)], {
      stdio: ["ignore", "ignore", "inherit"]
    })
  )
  try {
    const bodies = Array.from({ length: each * shares }, (_, index) => ({ body: 0, fairBy: `share-${index % shares}` }))
    await requeue.sendBatch("work", bodies)
    const left = db.prepare("SELECT count(*) AS n FROM requeue_message")
    while (left.get()?.["n"] !== 0) await new Promise((resolve) => setTimeout(resolve, 20))
    await requeue.close()
    const lines = logs.flatMap((log) => (fs.existsSync(log) ? fs.readFileSync(log, "utf8").trim().split("\n") : []))
    const delivered = db.prepare("SELECT fair_by, at, count FROM recorded ORDER BY at").all()
    return {
      runs: lines.map((line): Run => JSON.parse(line)),
      delivered: delivered.flatMap(({ at, count, fair_by: fairBy }) =>
        Array.from({ length: Number(count) }, () => ({ fairBy: String(fairBy), at: Number(at) }))
      )
    }
  } finally {
    for (const worker of workers) {
      const closed = once(worker, "close")
      worker.kill("SIGKILL")
      await closed
    }
    db.close()
    fs.rmSync(folder, { recursive: true })
  }
}

/** Returns the most runs that were in progress at the same time. */
const mostAtOnce = (runs: ReadonlyArray<Run>): number =>
  Math.max(...runs.map(({ begin }) => runs.filter((other) => other.begin <= begin && begin < other.end).length))

const byShare = <A extends { readonly fairBy: string }>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  const groups = [...Map.groupBy(all, ({ fairBy }) => fairBy).values()]
  assert.deepStrictEqual(
    groups.map(({ length }) => length),
    Array.from({ length: shares }, () => each)
  )
  return groups
}

describe("two processes with limits of shares handle all messages", { timeout: 120_000 }, () => {
  it("and never have more of a share in handlers together", async () => {
    const { runs } = await handle({ concurrency: 2 })
    for (const own of byShare(runs)) assert.isAtMost(mostAtOnce(own), 2)
  })

  it("and never get more of a share in any window", async () => {
    const [max, per] = [8, 200]
    const { delivered, runs } = await handle({ rateLimit: { max, per } })
    byShare(runs)
    for (const own of byShare(delivered))
      for (const [index, { at }] of own.entries())
        if (index >= max) assert.isAtLeast(at - own[index - max]!.at, per + ShareLimits.margin)
  })
})
