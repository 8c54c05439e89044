import { spawn } from "node:child_process"
import { start } from "@requeue/brokers"
import { KeyedWork, Wait } from "@requeue/conformance"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Pool } from "pg"
import { assert, it, vi } from "vitest"
import { adapter } from "../../src/index.ts"

const program = new URL("../keyWorker.ts", import.meta.url).pathname

const [keys, each, kills] = [500, 40, 10]

it(
  "20,000 messages of 500 keys keep their order through failures, parked letters, redrives and 10 kills",
  { timeout: 1_600_000 },
  async () => {
    vi.stubEnv("REQUEUE_POSTGRES_URL", "")
    const server = await start("postgres", { parameters: { fsync: "off" } })
    const { url } = server
    const pool = new Pool({ connectionString: url })
    await pool.query(
      "CREATE TABLE done (seq serial PRIMARY KEY, key text, n int); CREATE TABLE repaired (id text PRIMARY KEY)"
    )
    const requeue = await connect(url, { adapters: [adapter], logger: false })
    try {
      const redriven = await KeyedWork.run({
        requeue,
        queue: "work",
        deadLetterQueue: "work.dlq",
        keys,
        each,
        kills,
        launch: () => spawn(process.execPath, ["--conditions=@requeue/source", program, url], { stdio: "inherit" }),
        count: async () => Number((await pool.query<{ n: string }>("SELECT count(*) AS n FROM done")).rows[0]!.n),
        repair: async (ids) => {
          await pool.query("INSERT INTO repaired SELECT unnest($1::text[]) ON CONFLICT DO NOTHING", [ids])
        }
      })
      const { rows } = await pool.query<KeyedWork.Done>("SELECT key, n FROM done ORDER BY seq")
      assert.deepStrictEqual(KeyedWork.inversions(rows).slice(0, 10), [])
      assert.lengthOf(rows, keys * each)
      assert.isAbove(redriven, keys)
      const isEmpty = async () => {
        const { inFlight, ready } = await requeue.counts("work")
        return ready === 0 && inFlight === 0
      }
      await Effect.runPromise(Wait.until("an empty queue", isEmpty))
      await requeue.close()
    } finally {
      await pool.end()
      await server.dispose()
    }
  }
)
