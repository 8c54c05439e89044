#!/usr/bin/env node
/** Entry: the program's arguments in, its exit code out. */
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { run } from "./Cli.ts"
import * as ExitCode from "./ExitCode.ts"

const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer, NodeStdio.layer))
)

// A reader that has seen enough, as in `| head`, is no error of ours.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error
  })
}

const interruption = new AbortController()
process.once("SIGINT", () => interruption.abort())
process.once("SIGTERM", () => interruption.abort())

process.exitCode = await Effect.runPromise(Effect.provide(run(process.argv.slice(2)), platform), {
  signal: interruption.signal
}).catch(() => ExitCode.interrupted)
