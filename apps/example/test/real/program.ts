/** The program as a child process. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { afterAll } from "vitest"
import type { Report } from "../../src/report.ts"
import { inTime } from "../deadline.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

const leftovers = new Set<() => void>()
afterAll(() => {
  for (const kill of leftovers) kill()
})

export const start = (...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] })
  const kill = () => child.kill("SIGKILL")
  leftovers.add(kill)
  const output = { stdout: "", stderr: "" }
  const listeners = new Set<() => void>()
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text
      for (const listener of listeners) listener()
    })
  }
  const closed = once(child, "close").then(([code, signal]) => {
    leftovers.delete(kill)
    return { code: code as number | null, signal: signal as string | null }
  })
  const told = (what: string) => () => `${what} of ${args.join(" ")}, which said ${output.stderr}`
  return {
    child,
    output,
    /** How it ended. */
    ended: () => inTime(closed, told("the end")),
    /** Resolves when standard error matches. */
    says: (pattern: RegExp) =>
      inTime(
        new Promise<void>((resolve, reject) => {
          const listener = () => pattern.test(output.stderr) && resolve()
          listeners.add(listener)
          listener()
          void closed.then(() => reject(new Error(`ended before it said ${pattern}: ${output.stderr}`)))
        }),
        told(String(pattern))
      ),
    report: () => JSON.parse(output.stdout.trimEnd().split("\n").at(-1)!) as Report
  }
}
