#!/usr/bin/env node
/** The entry of the program. */
import { setFlagsFromString } from "node:v8"
import { run } from "./Program.ts"

// Long looks make much garbage. V8 would let it grow to a few hundred megabytes; so it stays below half of that.
setFlagsFromString("--optimize-for-size")

// A reader that ends before the program does, as in `| head`, is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const interruption = new AbortController()
// A terminal that is closed sends SIGHUP.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => interruption.abort())

process.exitCode = await run(process.argv.slice(2), process, interruption.signal)
