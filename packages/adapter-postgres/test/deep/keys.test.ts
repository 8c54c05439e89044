import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { start } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import * as Effect from "effect/Effect"
import { Pool } from "pg"
import { assert, it, vi } from "vitest"
import { adapter } from "../../src/index.ts"

const [keys, each, kills] = [500, 40, 10]
const total = keys * each

const program = new URL("../keyWorker.ts", import.meta.url).pathname

const launch = (url: string): ChildProcess =>
  spawn(process.execPath, ["--conditions=@requeue/source", program, url], { stdio: ["ignore", "ignore", "inherit"] })

const kill = async (child: ChildProcess): Promise<void> => {
  const closed = once(child, "close")
  child.kill("SIGKILL")
  await closed
}

const until = (what: string, holds: () => Promise<boolean>): Promise<void> =>
  Effect.runPromise(Wait.until(what, holds, 600_000))

it(
  "20,000 messages of 500 keys keep their order through failures, parked letters, redrives and 10 kills",
  { timeout: 1_200_000 },
  async () => {
    vi.stubEnv("REQUEUE_POSTGRES_URL", "")
    const server = await start("postgres", { parameters: { fsync: "off" } })
    const { url } = server
    const pool = new Pool({ connectionString: url })
    await pool.query(
      "CREATE TABLE done (seq serial PRIMARY KEY, key text, n int); CREATE TABLE repaired (id text PRIMARY KEY)"
    )
    const requeue = await connect(url, { adapters: [adapter], logger: false })
    const letters = deadLetters(requeue, "work.dlq")
    const doneOf = async () => Number((await pool.query<{ n: string }>("SELECT count(*) AS n FROM done")).rows[0]!.n)
    let workers = [launch(url), launch(url), launch(url)]
    let redriven = 0
    const send = async () => {
      for (let n = 0; n < each; n++) {
        await requeue.sendBatch(
          "work",
          Array.from({ length: keys }, (_, index) => ({ body: { n }, key: `k${index}` }))
        )
      }
    }
    const killAll = async () => {
      for (let count = 1; count <= kills; count++) {
        await until(`part ${count}`, async () => (await doneOf()) >= (count * total) / (kills + 1))
        const [first, ...others] = workers
        await kill(first!)
        workers = [...others, launch(url)]
      }
    }
    const redriveAll = async () => {
      await until("letters", () => letters.exists())
      while ((await doneOf()) < total) {
        const audit = async (some: ReadonlyArray<{ readonly id: string }>) => {
          const ids = some.map(({ id }) => id)
          await pool.query("INSERT INTO repaired SELECT unnest($1::text[]) ON CONFLICT DO NOTHING", [ids])
        }
        redriven += (await letters.redrive({ audit, maxRedrives: 1000 })).redriven
      }
    }
    try {
      await Promise.all([send(), killAll(), redriveAll()])
      const inOrder = new Map<string, number>()
      const inversions: Array<string> = []
      const { rows } = await pool.query<{ key: string; n: number }>("SELECT key, n FROM done ORDER BY seq")
      for (const { key, n } of rows) {
        const expected = inOrder.get(key) ?? 0
        if (n !== expected) inversions.push(`${key}: ${n} instead of ${expected}`)
        inOrder.set(key, expected + 1)
      }
      assert.deepStrictEqual(inversions.slice(0, 10), [])
      assert.strictEqual(inOrder.size, keys)
      assert.isTrue([...inOrder.values()].every((count) => count === each))
      assert.isAbove(redriven, keys)
      await until("an empty queue", async () => {
        const { inFlight, ready } = await requeue.counts("work")
        return ready === 0 && inFlight === 0
      })
      await requeue.close()
    } finally {
      for (const child of workers) await kill(child)
      await pool.end()
      await server.dispose()
    }
  }
)
