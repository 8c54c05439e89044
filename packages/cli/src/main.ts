#!/usr/bin/env node
/** The entry of the program. It handles signals before it loads the rest. */
import { setFlagsFromString } from "node:v8"

// Npm only warns if Node is older, and the program would fail with a syntax error.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `requeue: Requeue needs Node.js 22.19 or newer, and this program runs on ${process.version}. Run the program on a newer Node.js\n`
  )
  process.exit(2)
}

// Browsing many letters makes much garbage, which V8 would let grow to a few hundred megabytes. This limit halves that.
setFlagsFromString("--optimize-for-size")

const interruption = new AbortController()
const abandonment = new AbortController()
// A closed terminal sends SIGHUP.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => (interruption.signal.aborted ? abandonment : interruption).abort())
}

/** Milliseconds that remaining work has to end, such as a connection whose other side is away. */
const endTimeout = 3_000

const { run } = await import("./Program.ts")
process.exitCode = await run(process.argv.slice(2), process, interruption.signal, abandonment)
const end = AbortSignal.any([abandonment.signal, AbortSignal.timeout(endTimeout)])
if (end.aborted) process.exit()
end.addEventListener("abort", () => process.exit())
