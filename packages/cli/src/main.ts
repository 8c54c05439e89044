#!/usr/bin/env node
/** Entry: the program's arguments in, its exit code out. */
import { run } from "./Program.ts"

// A reader that has seen enough, as in `| head`, is no error of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const interruption = new AbortController()
process.once("SIGINT", () => interruption.abort())
process.once("SIGTERM", () => interruption.abort())

process.exitCode = await run(process.argv.slice(2), process, interruption.signal)
