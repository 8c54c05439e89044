import assert from "node:assert/strict"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { test } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import "./kept.mjs"

const program = fileURLToPath(new URL("busy.mjs", import.meta.url))
const node = (code) => [process.execPath, "-e", code]
const run = (args, options) => spawnSync(process.execPath, [program, ...args], { encoding: "utf8", ...options })

/** One that runs: until its standard error reports its hogs. */
const start = async (...command) => {
  const child = spawn(process.execPath, [program, "--hogs", "1", ...command], { stdio: ["pipe", "pipe", "pipe"] })
  const ended = once(child, "close")
  let stderr = ""
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text))
  while (!/hogs \d+ on/.test(stderr)) {
    await Promise.race([once(child.stderr, "data"), ended])
    assert.equal(child.exitCode, null, stderr)
  }
  return { child, ended, hog: Number(/hogs (\d+) on/.exec(stderr)[1]), said: () => stderr }
}

const isAlive = (pid) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const gone = async (pid) => {
  for (const end = performance.now() + 60_000; isAlive(pid); await sleep(20)) {
    assert.ok(performance.now() < end, `process ${pid} is still there after a minute`)
  }
}

test("the command is run beside hogs, and its exit code is passed on", () => {
  const { status, stderr, stdout } = run(["--hogs=2", ...node("console.log(1);setTimeout(process.exit,1000,3)")])
  assert.deepEqual([status, stdout], [3, "1\n"])
  assert.match(stderr, /^busy: hogs \d+, \d+ on \d+ cores?, while running /)
  const [, had] = /the hogs had (\S+) s of CPU in \S+ s, \d+ % of \d+ core/.exec(stderr)
  assert.ok(Number(had) > 0, stderr)
})

test("options behind the command are the command's", () => {
  const { status, stdout } = run([...node("console.log(process.argv.slice(1).join())"), "--", "--hogs", "--help"])
  assert.deepEqual([status, stdout], [0, "--hogs,--help\n"])
})

test("signals are passed on to the command", async () => {
  const { child, ended } = await start(
    ...node('process.on("SIGTERM",()=>process.exit(5));setInterval(()=>{},9);console.log()')
  )
  await once(child.stdout, "data")
  child.kill("SIGTERM")
  assert.deepEqual(await ended, [5, null])
})

test("a command that dies of a signal ends as in a shell", () => {
  assert.equal(run(node('process.kill(process.pid, "SIGKILL")')).status, 137)
})

test("hogs do not outlive the one who started them, whatever it died of", { timeout: 60_000 }, async () => {
  const { child, ended, hog } = await start(...node("process.stdin.resume()"))
  assert.ok(isAlive(hog))
  child.kill("SIGKILL")
  child.stdin.end()
  // The end of standard error, which the hog has too.
  assert.deepEqual(await ended, [null, "SIGKILL"])
})

test("a machine that was not busy all the time is no success", async () => {
  const { child, ended, hog, said } = await start(...node("process.stdin.resume()"))
  process.kill(hog, "SIGKILL")
  await gone(hog)
  child.stdin.end()
  assert.deepEqual(await ended, [1, null])
  assert.match(said(), /1 of 1 hogs ended before the command/)
})

test("--cores pins the command and its hogs, where there is taskset", () => {
  const { status, stderr, stdout } = run(["--cores", "0", ...node("console.log(os.availableParallelism())")])
  if (spawnSync("taskset", ["--version"]).error === undefined) {
    assert.deepEqual([status, stdout], [0, "1\n"], stderr)
    assert.match(stderr, /hogs \d+ on 1 core,/)
  } else assert.equal(status, 1)
  const without = run(["--cores", "0", ...node("")], { env: { ...process.env, PATH: "" } })
  assert.equal(without.status, 1)
  assert.match(without.stderr, /--cores needs taskset, which is not here/)
})

test("misuse is explained, and help is given", () => {
  assert.match(run(["--help"]).stdout, /^npm run busy -- \[options\] COMMAND/)
  for (const args of [[], ["--hogs", "0", "ls"], ["--hogs", "many", "ls"], ["--what", "ls"]]) {
    const { status, stderr } = run(args)
    assert.equal(status, 2, args.join(" "))
    assert.match(stderr, /npm run busy -- \[options\] COMMAND/)
  }
  const { status, stderr } = run(["no-such-command"])
  assert.equal(status, 127)
  assert.match(stderr, /no-such-command ENOENT/)
})
