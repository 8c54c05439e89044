/** What only a process of its own shows: its exit code, its streams, its signals, and its terminal. */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { main, program, quoted, spawned } from "./requeue.ts"
import { until } from "./until.ts"

/** A command has a memory broker of its own, and says so: its zeros are nobody's queue. */
const note =
  "requeue: note: memory: each process has its own broker, and this one is empty. Inspect it in your program\n"

const watch = ["status", "--watch", "--interval", "100ms", "--url", "memory:", "--queue", "orders"]

describe.concurrent("the program", () => {
  it("is what package.json names, and says what runs it", () => {
    assert.match(readFileSync(main, "utf8"), /^#!\/usr\/bin\/env node\n/)
  })

  it("ends with the code of its command, and loads neither the console nor the YAML parser for it", async () => {
    const hook = `import { registerHooks } from "node:module"; registerHooks({ load: (url, context, next) => { if (/\\/(console\\/src|yaml\\/dist)\\//.test(url)) throw new Error(url); return next(url, context) } })`
    const env = {
      NODE_OPTIONS: `--conditions=@requeue/source --import=data:text/javascript,${encodeURIComponent(hook)}`
    }
    const { both, code } = await program(["check", "--url", "amqp://127.0.0.1:1", "-q", "a"], { env })
    assert.strictEqual(code, 3, both)
  })

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("ends with 130 after %s", async (signal) => {
    const interruption = (said: () => string) => until("a first look", () => said().includes("\n"))
    const { code, stderr } = await program(watch, { interruption, signal })
    assert.deepStrictEqual([code, stderr], [130, note])
  })

  it("reads a pipe and writes to one", async () => {
    const { both, code } = await spawned("sh", [
      "-c",
      `echo '{"id":1}' | ${quoted} send --url memory: -q a --id one | cat`
    ])
    assert.deepStrictEqual([code, both], [0, `${note}sent one to a\n`])
  })

  it("is content with a reader that has seen enough", async () => {
    const { code, stderr } = await spawned("bash", ["-c", `set -o pipefail; ${quoted} completion bash | true`])
    assert.deepStrictEqual([code, stderr], [0, ""])
  })

  it("does not hide that what it says cannot be written", async () => {
    const { code, stderr } = await spawned("sh", ["-c", `${quoted} --help > /dev/full`])
    assert.strictEqual(code, 1)
    assert.include(stderr, "ENOSPC")
  })
})

const isThere = (command: string): boolean => spawnSync(command, ["--version"]).error === undefined

describe.skipIf(!isThere("script"))("on a terminal", () => {
  // As a person's, whatever environment runs the tests: Node shows no colours where it finds `CI`.
  const person = "env -u CI -u NO_COLOR -u FORCE_COLOR -u NODE_DISABLE_COLORS TERM=xterm-256color"
  const onTerminal = (args: string, input: string) =>
    spawned("script", ["--quiet", "--return", "--command", `${person} ${quoted} ${args}`, "/dev/null"], { input })

  it("shows colours", async () => {
    const { both } = await onTerminal("check --url memory: --queue orders", "")
    assert.include(both, "\u001b[32mexact\u001b[39m")
  })
})
