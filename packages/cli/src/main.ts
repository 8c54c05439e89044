#!/usr/bin/env node
/** The entry of the program. */
import { setFlagsFromString } from "node:v8"
import { run } from "./Program.ts"

// Long looks make much garbage. V8 would let it grow to a few hundred megabytes; so it stays below half of that.
setFlagsFromString("--optimize-for-size")

// A reader that ends before the program does, as in `| head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error
})
// Nobody could be told. What must not be lost there, as an audit, is told by the callback of its write.
process.stderr.on("error", () => undefined)

const interruption = new AbortController()
process.once("SIGINT", () => interruption.abort())
process.once("SIGTERM", () => interruption.abort())

process.exitCode = await run(process.argv.slice(2), process, interruption.signal)
