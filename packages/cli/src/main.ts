#!/usr/bin/env node
/** The entry of the program. */
import { setFlagsFromString } from "node:v8"
import { run } from "./Program.ts"

// Long looks make much garbage. V8 would let it grow to a few hundred megabytes; so it stays below half of that.
setFlagsFromString("--optimize-for-size")

const interruption = new AbortController()
process.once("SIGINT", () => interruption.abort())
process.once("SIGTERM", () => interruption.abort())

process.exitCode = await run(process.argv.slice(2), process, interruption.signal)
