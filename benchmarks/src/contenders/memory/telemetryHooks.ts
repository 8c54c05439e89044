/** The places in core where a consumer calls its telemetry, and their replacement without it. */
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import type { Plugin } from "esbuild"

type Change = readonly [from: string, to: string]

/** By the file in `consume/internal`. */
export const hooks: Readonly<Record<string, ReadonlyArray<Change>>> = {
  "runs.ts": [
    ["task.watched = watch?.run(\n      items.map(({ delivery }) => delivery),\n      reruns\n    )\n", ""],
    ["watched?.end(failure === undefined ? (outcome as Telemetry.Ending) : redacted(retry, failure))", ""],
    ["runHandler(task, onEnded, task.watched?.within)", "runHandler(task, onEnded)"]
  ],
  "settler.ts": [["watch === undefined ? settled : watched(watch, requests, settled)", "settled"]],
  "runHandler.ts": [
    ["watched === undefined ? call(task, context) : watched(() => call(task, context))", "call(task, context)"]
  ]
}

/** @throws Error when a place has gone: the measurement would use the unchanged code */
export const without = (file: string, text: string): string =>
  hooks[file]!.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`telemetryHooks: ${file} has no ${from}`)
    return changed.replace(from, to)
  }, text)

export const removal: Plugin = {
  name: "without-telemetry",
  setup: (build) => {
    build.onLoad({ filter: /core\/src\/consume\/internal\/(runs|settler|runHandler)\.ts$/ }, ({ path }) => ({
      contents: without(basename(path), readFileSync(path, "utf8")),
      loader: "ts"
    }))
  }
}
