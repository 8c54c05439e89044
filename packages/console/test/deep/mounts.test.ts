/** The console inside of applications: each program of the README and of docs/console.md is run as it stands there. */
import { start } from "@requeue/brokers"
import { connect as connectTo } from "@requeue/core/promise"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { decoded } from "../world.ts"

const queue = "orders"
const base = "/ops/requeue"

const pages = ["../../README.md", "../../../../docs/console.md"]
  .map((path) => readFileSync(new URL(path, import.meta.url), "utf8"))
  .join("\n")

/** The program below a heading of these pages. */
const programOf = (heading: string): string => {
  const [, program] = new RegExp(`^### ${heading}\\n\\n\`\`\`ts no-run\\n(.*?)^\`\`\``, "ms").exec(pages) ?? []
  if (program === undefined) throw new Error(`no page has a program for ${heading}`)
  return program
}

const programs: Readonly<Record<string, string>> = {
  Node: programOf("Node"),
  "Express 5": programOf("Express 4 and 5"),
  "Express 4": programOf("Express 4 and 5").replace(`from "express"`, `from "express4"`),
  Fastify: programOf("Fastify"),
  Hono: programOf("Hono"),
  Nest: programOf("Nest")
}

let [cwd, home] = ["", ""]
let stop: () => Promise<void> = async () => {}

beforeAll(async () => {
  const broker = await start("nsq")
  stop = broker.dispose
  cwd = mkdtempSync(join(tmpdir(), "requeue-mounts-"))
  // Where Node finds the packages of the frameworks.
  home = mkdtempSync(fileURLToPath(new URL("mount-", import.meta.url)))
  mkdirSync(home, { recursive: true })
  const document = { brokers: { nsq: broker.url }, queues: { [queue]: { retry: { maxRetries: 0 } } } }
  writeFileSync(join(cwd, "requeue.config.json"), JSON.stringify(document))
  await giveUp(broker.url, 2 * Object.keys(programs).length)
})
afterAll(async () => {
  await stop()
  for (const folder of [cwd, home]) rmSync(folder, { recursive: true, force: true })
})

/** Leaves dead letters, and nobody who consumes. */
const giveUp = async (url: string, count: number) => {
  await using requeue = await connectTo(url, { logLevel: "None" })
  const dead = Promise.withResolvers<void>()
  let left = count
  const onEvent = ({ _tag }: { readonly _tag: string }) => {
    if (_tag === "DeadLettered" && --left === 0) dead.resolve()
  }
  await requeue.consume(queue, { retry: { maxRetries: 0 }, onEvent }, () => {
    throw new Error("HTTP 503 from the shop")
  })
  await requeue.sendBatch(
    queue,
    Array.from({ length: count }, (_, order) => ({ body: { order } }))
  )
  await dead.promise
}

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // It listens on TCP.
  server.close()
  await once(server, "close")
  return port
}

/** Asks again until the answer is so. */
const until = async <A>(ask: () => Promise<A>, isSo: (answer: A) => boolean): Promise<A> => {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(100)) {
    const answer = await ask()
    if (isSo(answer)) return answer
  }
  throw new Error("it did not come to that")
}

/** Runs a program, and answers where its console is when it serves. */
const run = async (name: string): Promise<{ readonly process: ChildProcess; readonly origin: string }> => {
  const file = join(home, `${name.replace(" ", "-")}.mts`)
  writeFileSync(file, programs[name]!)
  const port = await freePort()
  const child = spawn(process.execPath, ["--conditions=@requeue/source", file], {
    cwd,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"]
  })
  let said = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
  const origin = `http://127.0.0.1:${port}`
  const isUp = async () => {
    if (child.exitCode !== null) throw new Error(`it ended: ${said}`)
    return fetch(origin + base).then(
      ({ status }) => status === 200,
      () => false
    )
  }
  await until(isUp, Boolean)
  return { process: child, origin }
}

/** What a page of the console sends with its forms. */
const submit = async (origin: string, page: string, action: string, fields: Readonly<Record<string, string>> = {}) => {
  const [form] = new RegExp(`<form method="post" action="${base}${action}">.*?</form>`, "s").exec(page) ?? [""]
  const hidden = [...form.matchAll(/type="hidden"\s+name="([^"]+)"\s+value="([^"]*)"/g)]
  const body = new URLSearchParams([
    ...hidden.map(([, name, value]): [string, string] => [name!, decoded(value!)]),
    ...Object.entries(fields)
  ])
  const response = await fetch(`${origin}${base}${action}`, {
    method: "POST",
    headers: { origin },
    body,
    redirect: "manual"
  })
  assert.strictEqual(response.status, 303, await response.text())
  return origin + response.headers.get("location")!
}

const textOf = async (url: string): Promise<string> => (await fetch(url)).text()

/** Opens a stream of events, and leaves when the first has come. */
const firstEvent = async (url: string): Promise<string> => {
  const leaving = new AbortController()
  const response = await fetch(url, { signal: leaving.signal })
  assert.strictEqual(response.status, 200)
  const { value } = await response.body!.getReader().read()
  leaving.abort()
  return new TextDecoder().decode(value)
}

describe("mounted in an application", () => {
  for (const name of Object.keys(programs)) {
    it(`of ${name}, pages, forms and streams work, and it ends when it is asked to`, async () => {
      const { origin, process: child } = await run(name)
      try {
        // Its address has arrived: without that nobody is let in.
        const overview = await textOf(`${origin}${base}/`)
        assert.include(overview, queue)
        const files = [...overview.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]+)"/g)].map(([, path]) => path!)
        assert.lengthOf(files, 3)
        for (const path of files) assert.strictEqual((await fetch(origin + path)).status, 200, path)

        const page = await textOf(`${origin}${base}/dead-letters?broker=nsq&queue=${queue}.dlq`)
        const plan = await submit(origin, page, "/plan")
        const counted = await until(
          () => textOf(plan),
          (text) => !text.includes("data-live")
        )
        const job = await submit(origin, counted, "/redrive", { how: "stages" })

        // Nobody consumes, so that it goes on. Clients that leave take no place among those that may stay: 10.
        const live = job.replace("/job?", "/live/job?")
        for (let clients = 0; clients < 15; clients++) assert.match(await firstEvent(live), /^event: update\n/)
        const stays = await fetch(live)
        // As a browser opens it in advance.
        const unused = connect(Number(new URL(origin).port), "127.0.0.1")
        await once(unused, "connect")
        const ended = once(child, "exit")
        child.kill("SIGTERM")
        assert.match(await stays.text(), /^event: update\n/)
        assert.deepStrictEqual(await ended, [0, null])
        const lines = readFileSync(join(cwd, "audit.jsonl"), "utf8").trim().split("\n")
        const last = JSON.parse(lines.at(-1)!) as { readonly command: string; readonly outcome: string }
        assert.include(last, { command: "console redrive", outcome: "abort" })
      } finally {
        child.kill("SIGKILL")
      }
    }, 120_000)
  }
})
