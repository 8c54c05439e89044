/** Go's command. */
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Unavailable } from "../Broker.ts"

const run = promisify(execFile)

/** Runs `go` in a folder. Throws `Unavailable` if there is no `go` command, or it fails. */
export const go = async (args: ReadonlyArray<string>, cwd: string): Promise<{ readonly stdout: string }> => {
  const options = {
    cwd,
    timeout: 1_800_000,
    maxBuffer: 1 << 26,
    env: { ...process.env, GOFLAGS: "", GOWORK: "off" }
  }
  return run("go", args, options).catch((cause: Error & { code?: unknown; stderr?: string }) => {
    if (cause.code === "ENOENT") throw new Unavailable("there is no go command")
    throw new Unavailable(`go ${args[0]} failed: ${cause.stderr?.trim().split("\n").at(-1) || cause.message}`)
  })
}
