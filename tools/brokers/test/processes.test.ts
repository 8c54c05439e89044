import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, test } from "vitest"
import { withLock } from "../src/lock.ts"
import * as processes from "../src/processes.ts"

const sleeper = async (env: NodeJS.ProcessEnv = {}): Promise<[ChildProcess, processes.Identity]> => {
  const child = spawn("sleep", ["60"], { env: { ...process.env, ...env }, stdio: "ignore" })
  await once(child, "spawn")
  const identity = processes.identify(child.pid ?? 0)
  assert.isDefined(identity)
  return [child, identity as processes.Identity]
}

test("a process is known by its pid and its start time, and only then signalled", async () => {
  const [child, identity] = await sleeper()
  const another = { ...identity, started: "another time" }
  assert.isTrue(processes.isAlive(identity))
  assert.isFalse(processes.isAlive(another))
  assert.isFalse(processes.signal(another, "SIGKILL"))
  await processes.kill([another])
  assert.strictEqual(child.signalCode, null)
  const gone = once(child, "exit")
  await processes.kill([identity])
  await gone
  assert.strictEqual(child.signalCode, "SIGKILL")
  assert.isFalse(processes.isAlive(identity))
  assert.isFalse(processes.signal(identity, "SIGKILL"))
})

test.runIf(process.platform === "linux")("helpers are found by the mark in their environment", async () => {
  const id = `test-${process.pid}`
  const [, identity] = await sleeper({ [processes.marker]: id })
  assert.deepStrictEqual(processes.marked(id), [identity])
  assert.deepStrictEqual(processes.marked(`${id}0`), [])
  await processes.kill([identity])
})

test("a lock lets one in at a time, and a dead owner's is taken over", async () => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-lock-"))
  const file = join(folder, "lock")
  writeFileSync(file, JSON.stringify({ pid: process.pid, started: "another time" }))
  const seen: Array<string> = []
  const said: Array<string> = []
  const enter = (name: string) =>
    withLock(
      file,
      (line) => void said.push(line),
      async () => {
        seen.push(`${name} in`)
        await new Promise((resolve) => setImmediate(resolve))
        seen.push(`${name} out`)
      }
    )
  await Promise.all([enter("a"), enter("b")])
  assert.deepStrictEqual(seen, ["a in", "a out", "b in", "b out"])
  assert.deepStrictEqual(said, [`Waiting for the process that holds ${file} ...`])
  rmSync(folder, { recursive: true })
})
