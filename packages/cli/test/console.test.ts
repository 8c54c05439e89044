/** `requeue console`: what it serves, whom it refuses, and how it ends. Its pages are tested in packages/console. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { main, requeue } from "./requeue.ts"
import { until } from "./until.ts"

let cwd = ""
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "requeue-console-"))
  const brokers = { local: "memory:", secret: "amqp://guest:${NOT_SET}@localhost/" }
  const queues = { orders: { broker: "local" }, mails: { broker: "local" }, bills: { broker: "secret" } }
  writeFileSync(join(cwd, "requeue.config.json"), JSON.stringify({ brokers, queues }))
})
afterAll(() => rmSync(cwd, { recursive: true, force: true }))

/** Runs the command until `visit` has seen what it serves. */
const served = (args: ReadonlyArray<string>, visit: (url: string) => Promise<void>, env: Record<string, string> = {}) =>
  requeue(["console", "--port", "0", "--json", ...args], {
    cwd,
    env,
    interruption: async (said) => {
      await until("the URL is told", () => said().includes("\n"))
      await visit((JSON.parse(said()) as { readonly url: string }).url) // As --json has it.
    }
  })

/** Sends the form of a dry run. */
const planned = async (url: string) => {
  const path = "dead-letters?broker=local&queue=orders.dlq"
  // The first page begins a look, and has no forms while that runs.
  let token: string | undefined
  await until("the look has ended", async () => {
    token = /name="token"\s+value="([^"]+)"/.exec(await (await fetch(url + path)).text())?.[1]
    return token !== undefined
  })
  const headers = { origin: url.slice(0, -1), "content-type": "application/x-www-form-urlencoded" }
  const body = new URLSearchParams({ token: token!, broker: "local", queue: "orders.dlq" })
  const response = await fetch(`${url}plan`, { method: "POST", headers, body, redirect: "manual" })
  return { status: response.status, text: await response.text() }
}

describe("requeue console", () => {
  it("serves every queue of the config file, and a broker whose secret is missing is told as such", async () => {
    const { code, stderr } = await served([], async (url) => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/)
      const text = await (await fetch(url)).text()
      assert.match(text, /orders[^]*mails[^]*secret[^]*NOT_SET[^]*bills/)
    })
    assert.strictEqual(code, 130, stderr)
  })

  it("serves brokers that only differ in their place", async () => {
    const file = join(cwd, "places.json")
    const brokers = { local: "memory:", staging: "memory:" }
    writeFileSync(file, JSON.stringify({ broker: "local", brokers, queues: { parcels: {} } }))
    await served(["--config", file], async (url) => {
      assert.match(await (await fetch(url)).text(), /local[^]*parcels[^]*staging[^]*parcels/)
    })
  })

  it("serves one broker by its name, and one without a config file", async () => {
    await served(["--broker", "local"], async (url) => {
      assert.notInclude(await (await fetch(url)).text(), "bills")
    })
    await served(["--url", "memory:", "--queue", "parcels"], async (url) => {
      assert.include(await (await fetch(url)).text(), "parcels.dlq")
    })
  })

  it("asks for the password, which then does what the role says", async () => {
    const env = { REQUEUE_CONSOLE_PASSWORD: "correct horse battery" }
    await served(
      ["--operator", "ann", "--role", "view"],
      async (url) => {
        assert.strictEqual((await fetch(url)).status, 401)
        const authorization = `Basic ${Buffer.from("ann:correct horse battery").toString("base64")}`
        const text = await (await fetch(url, { headers: { authorization } })).text()
        assert.match(text, /ann <span class="soft">view<\/span>/)
      },
      env
    )
  })

  it.each(["a full disk", "a pipe without a reader"])("does nothing where its audit goes to %s", async (sink) => {
    const full = openSync("/dev/full", "w")
    const args = ["--conditions=@requeue/source", main, "console", "--port", "0", "--json"]
    const child = spawn(process.execPath, args, {
      cwd,
      stdio: ["ignore", "pipe", sink === "a full disk" ? full : "pipe"]
    })
    try {
      child.stderr?.destroy()
      let said = ""
      child.stdout!.on("data", (chunk) => (said += String(chunk)))
      await until("the URL is told", () => said.includes("\n"))
      const { url } = JSON.parse(said) as { readonly url: string } // As --json has it.
      for (let times = 0; times < 2; times++) {
        const { status, text } = await planned(url)
        assert.strictEqual(status, 503)
        assert.match(text, /the audit could not be written: .*(ENOSPC|EPIPE)/)
      }
      assert.isNull(child.exitCode)
    } finally {
      closeSync(full)
      child.kill()
      await once(child, "exit")
    }
  })

  it.each(["no/such/folder/audit.jsonl", "."])("does not begin where its audit cannot be written: %s", async (file) => {
    const { code, stderr, stdout } = await requeue(["console", "--port", "0", "--audit", file], { cwd })
    assert.strictEqual(code, 2)
    assert.match(stderr, /--audit: (ENOENT|EISDIR).*Give a file that can be written/)
    assert.strictEqual(stdout, "")
  })

  it("writes its audit into a file", async () => {
    const file = join(cwd, "audit.jsonl")
    await served(["--audit", "audit.jsonl", "--operator", "ann"], async (url) => {
      const { status } = await planned(url)
      assert.strictEqual(status, 303)
    })
    const [begin] = readFileSync(file, "utf8").split("\n")
    assert.deepInclude(JSON.parse(begin!), {
      event: "begin",
      command: "console plan",
      operator: "ann",
      broker: "local"
    })
  })

  it.each([
    [["--host", "0.0.0.0"], /a console on 0\.0\.0\.0 needs authentication.*REQUEUE_CONSOLE_PASSWORD/],
    [["--name", "ops.example.com"], /the host ops\.example\.com needs authorize/],
    [["--broker", "nobody"], /has no queue on nobody\. Give --broker with one of local/],
    [["--role", "god"], /"view" \| "bodies" \| "redrive" \| "purge"/]
  ])("is refused: %j", async (args, said) => {
    const { code, stderr } = await requeue(["console", "--port", "0", ...args], { cwd })
    assert.strictEqual(code, 2)
    assert.match(stderr, said)
  })

  it.each([
    [[], "short", /at least 12 characters.*--operator/s],
    [[], "", /at least 12 characters/],
    [[], " ".repeat(12), /at least 12 characters/],
    [["--operator", "a:b"], "a-long-password", /name must have no colon/],
    [["--host", "0.0.0.0"], "a-long-password", /needs the names of its hosts.*--name/s],
    [["--proxy", "proxy.example"], "a-long-password", /proxies must be a list of addresses/]
  ])("is refused with a password: %j %j", async (args, password, said) => {
    const env = { REQUEUE_CONSOLE_PASSWORD: password }
    const { code, stderr } = await requeue(["console", "--port", "0", ...args], { cwd, env })
    assert.strictEqual(code, 2, stderr)
    assert.match(stderr, said)
    assert.notInclude(stderr, "mistake of ours")
  })
})
