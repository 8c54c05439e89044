import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { test } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import "./kept.mjs"

const skip = process.platform === "linux" ? false : "only Linux shows the environment of processes"
const module = (name) => JSON.stringify(import.meta.resolve(name))

/** Runs a program whose children are kept, until it has printed something, and kills it. Returns its output. */
const killed = async (program) => {
  const code = `import ${module("./kept.mjs")}\nimport { spawn } from "node:child_process"\n${program}\nsetInterval(() => {}, 1e6)`
  // Without the mark of this test's parent: the program needs its own keeper.
  const { REQUEUE_TEST_OWNER: _, ...env } = process.env
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { env, stdio: ["ignore", "pipe", 2] })
  const ended = once(child, "exit").then(() => assert.fail("it ended before it said anything"))
  const [said] = await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), ended])
  child.kill("SIGKILL")
  return said.trim()
}

const until = async (what, isSo) => {
  for (const end = performance.now() + 120_000; !isSo(); await sleep(20)) {
    assert.ok(performance.now() < end, `waited for two minutes: ${what}`)
  }
}

/** Whether there is no such process, or only a zombie. */
const isGone = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/environ`).length === 0
  } catch {
    return true
  }
}

test(
  "what a killed process has started ends, also what that has started, in a group of its own",
  { skip },
  async () => {
    const deaf = `process.on("SIGTERM",()=>{});process.on("SIGHUP",()=>{})`
    const grandchild = `${deaf};setInterval(()=>{},1e6);console.log(process.ppid,process.pid)`
    const child = `${deaf};child_process.spawn(process.execPath,["-e",process.argv[1]],{detached:true,stdio:"inherit"})`
    const said = await killed(
      `spawn(process.execPath, ["-e", ${JSON.stringify(child)}, ${JSON.stringify(grandchild)}], { stdio: "inherit" })`
    )
    const pids = said.split(" ").map(Number)
    assert.equal(pids.length, 2)
    await until(`the end of ${said}`, () => pids.every(isGone))
  }
)

test("a broker's keeper is let do its work: the folder of the broker goes as well", { skip }, async () => {
  const folder = await killed(
    `import { make } from ${module("../tools/brokers/src/Instance.ts")}
    const instance = await make()
    instance.spawn("sleep", ["600"], { env: { PATH: process.env.PATH }, output: "sleep.log" })
    console.log(instance.folder)`
  )
  await until(`the end of ${folder}`, () => !existsSync(folder))
})
