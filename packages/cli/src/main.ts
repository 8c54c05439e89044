#!/usr/bin/env node
/** The entry of the program. */
import { run } from "./Program.ts"

// A reader that ends before the program does, as in `| head`, is no error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const interruption = new AbortController()
process.once("SIGINT", () => interruption.abort())
process.once("SIGTERM", () => interruption.abort())

process.exitCode = await run(process.argv.slice(2), process, interruption.signal)
