/** Three processes on one file, of which one after another is killed: the books balance. */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { connect } from "@requeue/core/promise"
import { assert } from "vitest"
import { adapter } from "../src/index.ts"

/** Whether a worker's rows and sends are in the transaction of its acks. */
type Form = "transaction" | "ack"

interface Line {
  readonly name: string
  readonly id: string
  readonly attempts: number
  readonly at: number
  readonly is: "ready" | "begin" | "end" | "failure" | "LeaseLost"
}

/** The delay of a retry, in milliseconds; the worker has the same. */
const delay = 50

/** How often a message fails, `null`: always. Of ten, two fail once and one becomes a dead letter. */
const failsOf = (index: number): number | null => (index % 10 === 0 ? null : index % 5 === 1 ? 1 : 0)

interface Sent {
  readonly id: string
  readonly body: { readonly fails: number | null }
}

/** Checks that two lists have the same texts, each once. The error shows the difference only. */
const checkSame = (what: string, actual: ReadonlyArray<string>, expected: ReadonlyArray<string>): void => {
  const [one, other] = [new Set(actual), new Set(expected)]
  const difference = {
    missing: expected.filter((text) => !one.has(text)),
    unexpected: [...one].filter((text) => !other.has(text))
  }
  assert.deepStrictEqual(difference, { missing: [], unexpected: [] }, what)
  assert.strictEqual(actual.length, one.size, `${what}: twice`)
}

const program = new URL("worker.ts", import.meta.url).pathname

const start = (path: string, log: string, name: string, form: Form): ChildProcess =>
  spawn(process.execPath, ["--conditions=@requeue/source", program, path, log, name, form], {
    stdio: ["ignore", "ignore", "inherit"]
  })

const kill = async (child: ChildProcess): Promise<number> => {
  const closed = once(child, "close")
  child.kill("SIGKILL")
  await closed
  return Date.now()
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Checks that no run began early, and none while another process had the message. A stopped process can lose the lease of a run. */
const checkRuns = (lines: ReadonlyArray<Line>, killed: ReadonlyMap<string, number>): void => {
  for (const [id, own] of Map.groupBy(lines, (line) => line.id)) {
    if (id === undefined) continue
    const sorted = own.toSorted((a, b) => a.at - b.at || a.attempts - b.attempts)
    for (const [index, line] of sorted.entries()) {
      const before = sorted[index - 1]
      if (line.is !== "begin" || before === undefined) continue
      if (before.is === "failure") assert.isAtLeast(line.at - before.at, delay, `early: ${id}`)
      const isSame = (other: Line) => other.name === before.name && other.attempts === before.attempts
      const isLost = own.some((other) => other.is === "LeaseLost" && isSame(other))
      if (before.is === "begin" && !isLost)
        assert.isAtLeast(line.at, killed.get(before.name) ?? Number.NaN, `twice at a time: ${id}`)
    }
  }
}

/** Checks that each message has a row and a receipt, or a dead letter, and that the file is undamaged. */
const checkBooks = (path: string, sent: ReadonlyArray<Sent>, form: Form): void => {
  const db = new DatabaseSync(path)
  const rows = (queue: string) => db.prepare("SELECT body, metadata FROM requeue_message WHERE queue = ?").all(queue)
  const idsOf = (isLetter: boolean) => sent.flatMap(({ body, id }) => ((body.fails === null) === isLetter ? [id] : []))
  const receipts = rows("receipts").map(
    ({ body }): string => JSON.parse(new TextDecoder().decode(body as Uint8Array)).of
  )
  const letters = rows("work.dlq").map(({ metadata }): string => JSON.parse(String(metadata)).id)
  const mine = db
    .prepare("SELECT id FROM mine")
    .all()
    .map(({ id }) => String(id))
  // Without a transaction, a process that is killed before its ack writes and sends again.
  const ended = (ids: ReadonlyArray<string>) => (form === "transaction" ? ids : [...new Set(ids)])
  checkSame("rows", ended(mine), idsOf(false))
  checkSame("receipts", ended(receipts), idsOf(false))
  checkSame("dead letters", letters, idsOf(true))
  assert.strictEqual(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok")
  db.close()
}

/** Sends messages, kills workers meanwhile, and waits until all messages have ended. */
export const run = async ({
  form,
  kills,
  messages
}: {
  readonly form: Form
  readonly messages: number
  readonly kills: number
}): Promise<void> => {
  const folder = fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))
  const path = join(folder, "queue.db")
  const db = new DatabaseSync(path)
  db.exec("CREATE TABLE mine (id TEXT)")
  db.close()
  const logs: Array<string> = []
  const killed = new Map<string, number>()
  const startNext = () => {
    const name = `worker-${logs.length}`
    logs.push(join(folder, name))
    return { name, child: start(path, join(folder, name), name, form) }
  }
  const read = (): ReadonlyArray<Line> =>
    logs.flatMap((log) =>
      fs.existsSync(log)
        ? fs
            .readFileSync(log, "utf8")
            .split("\n")
            // The last line of a killed process may be cut.
            .filter((text) => text.endsWith("}"))
            .map((text): Line => JSON.parse(text))
        : []
    )
  const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
  let workers = [startNext(), startNext(), startNext()]
  try {
    const sent = Array.from({ length: messages }, (_, index) => ({ id: `m${index}`, body: { fails: failsOf(index) } }))
    const half = Math.floor(messages / 2)
    await requeue.sendBatch("work", sent.slice(0, half))
    const sending = (async () => {
      for (let i = half; i < messages; i += 20)
        await requeue.sendBatch("work", sent.slice(i, Math.min(i + 20, messages)))
    })()
    for (let count = 0; count < kills; count++) {
      const [first, ...others] = workers
      while (!read().some(({ is, name }) => name === first!.name && is === "begin")) await pause(20)
      killed.set(first!.name, await kill(first!.child))
      workers = [...others, startNext()]
    }
    await sending
    for (let counts = await requeue.counts("work"); ; counts = await requeue.counts("work")) {
      if (counts.ready === 0 && counts.inFlight === 0 && counts.delayed === 0) break
      await pause(50)
    }
    await requeue.close()
    checkRuns(read(), killed)
    checkBooks(path, sent, form)
  } finally {
    for (const { child } of workers) await kill(child)
    fs.rmSync(folder, { recursive: true })
  }
}
