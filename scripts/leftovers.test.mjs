import assert from "node:assert/strict"
import { spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { test } from "node:test"
import { leftovers, runMark } from "./leftovers.mjs"
import "./kept.mjs"

const skip = existsSync("/proc/self/environ") ? false : "this system has no /proc"

/** A process with the mark of a run, which runs until its standard input ends. */
const start = async (id) => {
  const args = ["-e", "process.stdin.resume();console.log()", "left-behind"]
  const child = spawn(process.execPath, args, { env: { ...process.env, [runMark]: id }, stdio: ["pipe", "pipe", 2] })
  await once(child.stdout, "data")
  return child
}

test("a process that still carries the mark is listed, and printed with its age", { skip }, async () => {
  const id = randomUUID()
  const child = await start(id)
  const said = []
  const [found, ...others] = await leftovers(id, { patience: 0, print: (line) => said.push(line) })
  child.kill("SIGKILL")
  assert.deepEqual(others, [])
  assert.equal(found.pid, child.pid)
  assert.match(found.command, /process\.stdin\.resume.* left-behind$/)
  assert.equal(said.length, 1)
  assert.match(said[0], new RegExp(`^left behind: process ${child.pid}, \\d+ s old: .* left-behind$`))
})

test("a process that ends meanwhile is not", { skip }, async () => {
  const id = randomUUID()
  const child = await start(id)
  const found = leftovers(id, { patience: 60_000 })
  child.stdin.end()
  assert.deepEqual(await found, [])
})

test("processes of another run are not", { skip }, async () => {
  const child = await start(randomUUID())
  assert.deepEqual(await leftovers(randomUUID(), { patience: 0 }), [])
  child.kill("SIGKILL")
})

test("neither the process that asks nor its ancestors are", { skip }, () => {
  const id = randomUUID()
  const program = `import { leftovers } from ${JSON.stringify(import.meta.resolve("./leftovers.mjs"))}
    console.log(JSON.stringify(await leftovers("${id}", { patience: 0 })))`
  const inner = `spawnSync(process.execPath, ["--input-type=module", "-e", process.argv[1]], { stdio: "inherit" })`
  const { stdout } = spawnSync(process.execPath, ["-e", `child_process.${inner}`, program], {
    encoding: "utf8",
    env: { ...process.env, [runMark]: id }
  })
  assert.equal(stdout, "[]\n")
})
