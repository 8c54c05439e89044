/**
 * A consumer with limits of shares in another process: `node shareWorker.ts <path> <log> <limits>`. It appends a line of JSON to the log
 * for each run: its share, and the times of its begin and its end on the clock that all processes of a machine have, in milliseconds.
 */
import { appendFileSync } from "node:fs"
import { connect } from "@requeue/core/promise"
import { adapter } from "../src/index.ts"

const [path, log, limits] = process.argv.slice(2)
const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
const now = (): number => Number(process.hrtime.bigint()) / 1e6
const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

await requeue.consume("work", { concurrency: 20, shareLimits: JSON.parse(limits!) }, async ({ fairBy }) => {
  const begin = now()
  await pause(5)
  appendFileSync(log!, `${JSON.stringify({ fairBy, begin, end: now() })}\n`)
})
