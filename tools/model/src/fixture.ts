/** The committed traces: one in each line, as JSON. */
import { readFileSync, writeFileSync } from "node:fs"
import type { Trace } from "./traces.ts"

const file = new URL("../test/traces.jsonl", import.meta.url)

export const read = (): ReadonlyArray<Trace> =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line): Trace => JSON.parse(line))

export const write = (traces: ReadonlyArray<Trace>): void =>
  writeFileSync(file, traces.map((trace) => `${JSON.stringify(trace)}\n`).join(""))
