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

interface Line {
  readonly name: string
  readonly id: string
  readonly attempts: number
  readonly at: number
  readonly is: "ready" | "begin" | "end" | "failure"
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

const start = (url: string, log: string, name: string): ChildProcess =>
  spawn(process.execPath, ["--conditions=@requeue/source", program, url, log, name], {
    stdio: ["ignore", "ignore", "inherit"]
  })

const kill = async (child: ChildProcess): Promise<number> => {
  const closed = once(child, "close")
  child.kill("SIGKILL")
  await closed
  return Date.now()
}

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** Checks that no run began early, and none while another process had the message. */
const checkRuns = (lines: ReadonlyArray<Line>, killed: ReadonlyMap<string, number>): void => {
  for (const [id, own] of Map.groupBy(lines, (line) => line.id)) {
    if (id === undefined) continue
    const sorted = own.toSorted((a, b) => a.at - b.at || a.attempts - b.attempts)
    for (const [index, line] of sorted.entries()) {
      const before = sorted[index - 1]
      if (line.is !== "begin" || before === undefined) continue
      if (before.is === "failure") assert.isAtLeast(line.at - before.at, delay, `early: ${id}`)
      if (before.is === "begin")
        assert.isAtLeast(line.at, killed.get(before.name) ?? Number.NaN, `twice at a time: ${id}`)
    }
  }
}

/** Checks that each message has a receipt or a dead letter, and that the file is undamaged. */
const checkBooks = (path: string, sent: ReadonlyArray<Sent>): void => {
  const db = new DatabaseSync(path)
  const rows = (queue: string) => db.prepare("SELECT body, metadata FROM requeue_message WHERE queue = ?").all(queue)
  const idsOf = (isLetter: boolean) => sent.flatMap(({ body, id }) => ((body.fails === null) === isLetter ? [id] : []))
  const receipts = rows("receipts").map(
    ({ body }): string => JSON.parse(new TextDecoder().decode(body as Uint8Array)).of
  )
  const letters = rows("work.dlq").map(({ metadata }): string => JSON.parse(String(metadata)).id)
  // A process that is killed between its send and its ack sends again.
  checkSame("receipts", [...new Set(receipts)], idsOf(false))
  checkSame("dead letters", letters, idsOf(true))
  assert.strictEqual(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok")
  db.close()
}

/** Sends messages, kills workers meanwhile, and waits until all messages have ended. */
export const run = async ({
  kills,
  messages
}: {
  readonly messages: number
  readonly kills: number
}): Promise<void> => {
  const folder = fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))
  const url = `sqlite:${folder}/queue.db?lease=2000`
  const logs: Array<string> = []
  const killed = new Map<string, number>()
  const startNext = () => {
    const name = `worker-${logs.length}`
    logs.push(join(folder, name))
    return { name, child: start(url, join(folder, name), name) }
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
  const requeue = await connect(url, { adapters: [adapter], logger: false })
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
    checkBooks(join(folder, "queue.db"), sent)
  } finally {
    for (const { child } of workers) await kill(child)
    fs.rmSync(folder, { recursive: true })
  }
}
