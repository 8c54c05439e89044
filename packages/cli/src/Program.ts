/** The whole program: arguments and a process in, an exit code out. */
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NodeConsole from "node:console"
import * as Cli from "./Cli.ts"
import * as ExitCode from "./ExitCode.ts"
import { Process, type Service } from "./Process.ts"

/** What `effect/cli` may need; no command of ours does. */
const platform = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer, NodeStdio.layer))
)

/** Runs a command line, whose commands know of no process but the given one; the signal interrupts them. */
export const run = (args: ReadonlyArray<string>, process: Service, signal: AbortSignal): Promise<number> => {
  const { stderr, stdout } = process
  const program = Cli.run(args).pipe(
    Effect.provideService(Process, process),
    Effect.provideService(Console.Console, new NodeConsole.Console({ stdout, stderr })),
    Effect.provide(platform)
  )
  return Effect.runPromise(program, { signal }).catch(() => ExitCode.interrupted)
}
