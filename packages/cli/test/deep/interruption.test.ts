/** Signals at any moment, and what hangs: the program ends, and says what is known. On a real RabbitMQ. */
import { deadLetters, delayedMessages } from "@requeue/operations/promise"
import { spawn, spawnSync } from "node:child_process"
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { proxy } from "@requeue/brokers"
import { connect, type Requeue } from "@requeue/core/promise"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { clear, rabbitmq } from "../real/brokers.ts"
import { type Ended, main, program } from "../requeue.ts"
import { deadline, until, within } from "../until.ts"

let url = ""
let connection: Requeue
const folder = mkdtempSync(join(tmpdir(), "requeue-interruption-"))

beforeAll(async () => {
  url = (await rabbitmq()).url
  connection = await connect(url, { logLevel: "None" })
})

afterAll(async () => {
  await connection.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Dead letters of a queue that has none yet. */
const bury = async (queue: string, count: number) => {
  await clear(connection, `${queue}.dlq`)
  const entries = Array.from({ length: count }, (_, n) => ({ body: n, id: `${queue}-${n}` }))
  await using _worker = await connection.consume(queue, { retry: { maxRetries: 0 } }, () =>
    Promise.reject(new Error("no"))
  )
  await connection.sendBatch(queue, entries)
  await until("the dead letters", async () => (await deadLetters(connection, `${queue}.dlq`).count()) === count)
}

interface Run {
  readonly said: () => string
  readonly kill: (signal: NodeJS.Signals) => void
}

/** Runs the program while something is done to it. */
const during = async (
  args: ReadonlyArray<string>,
  act: (run: Run) => Promise<unknown>,
  env: NodeJS.ProcessEnv = {}
) => {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let [stdout, stderr] = ["", ""]
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
  const code = new Promise<number | null>((resolve) => child.on("close", resolve))
  const said = () => stdout + stderr
  try {
    await act({ said, kill: (signal) => void child.kill(signal) })
    const began = performance.now()
    const ended: Ended = { code: await within(code, () => `its end. It said ${said()}`), stdout, stderr, both: said() }
    return { ...ended, took: performance.now() - began }
  } finally {
    child.kill("SIGKILL")
  }
}

const redrive = (queue: string, ...rest: ReadonlyArray<string>) => [
  ..."dead-letters redrive --yes --json --url".split(" "),
  url,
  "--queue",
  queue,
  ...rest
]

/** All lines of a text, each of which is JSON. */
const jsonLines = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const events = (file: string) => jsonLines(readFileSync(file, "utf8"))

/** A program for an editor. */
const editor = (name: string, script: string): string => {
  const file = join(folder, name)
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
  return file
}

describe("a signal", () => {
  it.each([0, 100, 300, 1000])("%d ms after it can be heard is answered with one value of JSON", async (pause) => {
    const signal = `process.on("newListener", (name) => {
      if (name === "SIGINT") setTimeout(() => process.kill(process.pid, name), ${pause})
    })`
    const NODE_OPTIONS = `${process.env["NODE_OPTIONS"] ?? ""} --import data:text/javascript,${encodeURIComponent(signal)}`
    const { both, code, stderr, stdout } = await program(redrive("interrupted-early"), { env: { NODE_OPTIONS } })
    const values = [stdout, stderr].filter((text) => text !== "").map((text) => JSON.parse(text))
    assert.lengthOf(values, 1, both)
    // The queue is missing, which it may have found by then.
    assert.include(pause < 1000 ? [130] : [130, 1], code)
  })

  it("with the editor open ends the editor as well", async () => {
    await bury("opened", 1)
    const pid = join(folder, "pid")
    const args = redrive("opened", "--edit", "--id", "opened-0")
    const act = async ({ kill }: Run) => {
      await until("the editor", () => {
        try {
          return readFileSync(pid, "utf8").trim() !== ""
        } catch {
          return false
        }
      })
      kill("SIGINT")
    }
    const EDITOR = editor("stubborn", `trap "" TERM\necho $$ > ${pid}\nwhile :; do sleep 0.1; done`)
    const ended = await during(args, act, { EDITOR, VISUAL: "" })
    assert.deepStrictEqual([ended.code, ended.stdout], [130, ""])
    assert.strictEqual(JSON.parse(ended.stderr).error.message, "interrupted")
    const isThere = () => spawnSync("kill", ["-0", readFileSync(pid, "utf8").trim()]).status === 0
    await until("the end of the editor", () => !isThere())
    assert.strictEqual(await deadLetters(connection, "opened.dlq").count(), 1)
  })

  it("lets a redrive tell what it has done, as JSON", async () => {
    await bury("told", 20)
    const file = join(folder, "told.jsonl")
    rmSync(file, { force: true })
    const ended = await during(redrive("told", "--rate", "5", "--audit", file), async ({ kill }) => {
      await until("the first letters", async () => ((await connection.counts("told")).ready ?? 0) > 0)
      kill("SIGTERM")
    })
    const { interrupted, queues } = JSON.parse(ended.stdout)
    assert.deepStrictEqual([ended.code, ended.stderr, interrupted], [130, "", true])
    assert.strictEqual(queues[0].redriven, (await connection.counts("told")).ready)
    assert.deepStrictEqual(
      events(file)
        .filter(({ event }) => event !== "letter")
        .map(({ event, outcome }) => [event, outcome]),
      [
        ["begin", undefined],
        ["end", "interrupted"]
      ]
    )
  })

  it("lets a removal of delayed messages tell what is gone", async () => {
    await delayedMessages(connection, "backoff").purge({ all: true })
    const ids = Array.from({ length: 50 }, (_, n) => ({ id: `m${n}`, body: n, delay: "1 hour" as const }))
    await connection.sendBatch("backoff", ids)
    const taking = Promise.withResolvers<void>()
    /** The frame of AMQP by which a client begins to take messages: basic.consume. */
    const consume = Buffer.from([0, 60, 0, 20])
    await using wire = await through((_, from, bytes) => {
      if (from === "client" && bytes.includes(consume)) taking.resolve()
    })
    const args = ["delayed", "purge", "--all", "--yes", "--json", "--url", wire.url, "--queue", "backoff"]
    const ended = await during(args, async ({ kill }) => {
      await within(taking.promise, () => "the removal")
      kill("SIGINT")
    })
    const { interrupted, queues } = JSON.parse(ended.stdout)
    assert.deepStrictEqual([ended.code, ended.stderr, interrupted], [130, "", true])
    const { selected } = await delayedMessages(connection, "backoff").count()
    assert.strictEqual(queues[0].removed, 50 - selected)
  })

  it("that comes twice ends it at once, and the audit with it", async () => {
    await bury("twice", 5)
    const file = join(folder, "twice.jsonl")
    await using wire = await through()
    const args = redrive("twice", "--rate", "1", "--audit", file).map((arg) => (arg === url ? wire.url : arg))
    const ended = await during(args, async ({ kill }) => {
      await until("the first letter", async () => ((await connection.counts("twice")).ready ?? 0) > 0)
      // Nothing ends by itself now.
      wire.blackhole(true)
      kill("SIGINT")
      await new Promise((resolve) => setTimeout(resolve, 30))
      kill("SIGINT")
    })
    assert.deepStrictEqual([ended.code, ended.stdout], [130, ""])
    assert.isBelow(ended.took, 1500)
    assert.match(
      JSON.parse(ended.stderr).error.message,
      /^ended at once\. The result of the work in progress is unknown/
    )
    const end = events(file).at(-1)
    assert.deepInclude(end, { event: "end", outcome: "abandoned" })
    assert.isAtLeast(end.queues[0].published, 1)
  })
})

/** The broker by a connection that can fall silent. */
const through = async (tap?: Parameters<typeof proxy>[1]) => {
  const target = new URL(url)
  const wire = await proxy(Number(target.port), tap)
  target.port = String(wire.port)
  return { ...wire, url: target.href, [Symbol.asyncDispose]: () => wire.close() }
}

describe("a broker that falls silent", () => {
  it("does not keep a program that has ended, whose logs are lines of JSON", async () => {
    await using wire = await through()
    const impatient = new URL(wire.url)
    for (const option of ["connectTimeout", "requestTimeout", "heartbeat"]) impatient.searchParams.set(option, "1000")
    const args = ["status", "--watch", "--interval", "200ms", "--json", "--queue", "silent", "--url", impatient.href]
    const ended = await during(args, async ({ kill, said }) => {
      await until("a look", () => said().includes('"queues"'))
      wire.blackhole(true)
      await until("the end of the connection", () => said().includes("not connected"))
      kill("SIGINT")
    })
    assert.strictEqual(ended.code, 130)
    assert.isBelow(ended.took, 10_000)
    const logs = jsonLines(ended.stderr).map(({ log }) => log)
    assert.deepInclude(logs[0], {
      level: "warn",
      message: "the server stopped answering on a connection; the connection is dropped and reopened"
    })
    assert.isTrue(logs.every(({ level }) => level === "warn"))
    assert.isNotEmpty(jsonLines(ended.stdout))
  })
})

describe("an audit", () => {
  it.each(["redrive", "purge --all"])(
    "into a pipe without a reader is refused by %s, and nothing is done",
    async (command) => {
      await bury("piped", 2)
      const pipe = join(folder, `pipe-${command.length}`)
      assert.strictEqual(spawnSync("mkfifo", [pipe]).status, 0)
      const args = ["dead-letters", ...command.split(" "), "--yes", "--url", url, "--queue", "piped", "--audit", pipe]
      const { code, stderr, stdout } = await program(args)
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.match(stderr, /^requeue: --audit: ENXIO.* a pipe without a reader\. Nothing was done\. Give a file/)
      assert.strictEqual(await deadLetters(connection, "piped.dlq").count(), 2)
    }
  )

  it("into a pipe that somebody reads has all lines", async () => {
    await bury("read", 1)
    const command = [process.execPath, main, ...redrive("read")].map((word) => `'${word}'`).join(" ")
    const { stdout, status } = spawnSync("bash", ["-c", `exec 3>&1; ${command} --audit >(cat >&3) >/dev/null`], {
      encoding: "utf8",
      timeout: deadline
    })
    assert.strictEqual(status, 0)
    assert.deepStrictEqual(
      jsonLines(stdout).map(({ event }) => event),
      ["begin", "letter", "end"]
    )
  })
})

describe("an editor", () => {
  it.each([
    ["removes the file", 'rm "$1"', /the file to edit: ENOENT/],
    ["puts a folder there", 'rm "$1"; mkdir "$1"', /the file to edit: EISDIR/]
  ])("that %s is an error, and the original is kept", async (name, script, message) => {
    await bury("emptied", 1)
    const EDITOR = editor(name.replaceAll(" ", "-"), script)
    const args = ["dead-letters", "redrive", "--edit", "--yes", "--url", url, "--queue", "emptied"]
    const { code, stderr, stdout } = await program(args, { env: { EDITOR, VISUAL: "" } })
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, message)
    assert.match(stderr, /Nothing was changed/)
    assert.strictEqual(await deadLetters(connection, "emptied.dlq").count(), 1)
  })

  it("is not vi where there is no terminal", async () => {
    await bury("blind", 1)
    const args = ["dead-letters", "redrive", "--edit", "--yes", "--url", url, "--queue", "blind"]
    const { code, stderr, stdout } = await program(args, { env: { EDITOR: "", VISUAL: "" } })
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, /^requeue: neither VISUAL nor EDITOR names an editor, and there is no terminal for vi\./)
  })
})
