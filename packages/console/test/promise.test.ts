/** Consoles for programs without Effect. */
import { ConfigFileError } from "@requeue/config"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { openConsole } from "../src/index.ts"

let cwd = ""
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "requeue-console-"))
  const document = { brokers: { local: "memory:" }, queues: { orders: {} } }
  writeFileSync(join(cwd, "requeue.config.json"), JSON.stringify(document))
})
afterAll(() => rmSync(cwd, { recursive: true, force: true }))

const audit = () => {}

describe("openConsole", () => {
  it("serves the queues of the config file, under a path", async () => {
    await using requeue = await openConsole({ audit, base: "/ops/requeue", config: { cwd } })
    const client = { address: "127.0.0.1" }
    const page = await requeue.fetch(new Request("http://localhost/ops/requeue"), client)
    const text = await page.text()
    assert.match(text, /orders/)
    for (const [, href] of text.matchAll(/(?:href|action)="([^"]+)"/g)) assert.match(href!, /^\/ops\/requeue\//)
    assert.strictEqual((await requeue.fetch(new Request("http://localhost/ops/requeueing"), client)).status, 404)
    assert.strictEqual((await requeue.fetch(new Request("http://localhost/ops/requeue"))).status, 403)
  })

  it("plans a queue of the config file by the adapter of its broker", async () => {
    await using requeue = await openConsole({ audit, config: { cwd } })
    const page = await requeue.fetch(new Request("http://localhost/queue?broker=local&queue=orders"), {
      address: "127.0.0.1"
    })
    assert.include(await page.text(), 'class="diagram"')
  })

  it("rejects what it cannot use", async () => {
    const rejected = async (options: object) => {
      const opened = openConsole({ audit, config: { cwd }, ...options })
      return opened.then(
        () => undefined,
        (error: unknown) => error
      )
    }
    assert.instanceOf(await rejected({ config: { cwd, file: "missing.yaml" } }), ConfigFileError)
    assert.match(String(await rejected({ base: "requeue/../x" })), /RangeError: Console\.make.*base must be a path/)
    assert.match(String(await rejected({ redcat: 1 })), /RangeError: Console\.make.*redcat/)
    assert.match(String(await rejected({ hosts: ["ops.example.com"] })), /RangeError.*needs authorize/)
    assert.match(String(await rejected({ audit: undefined })), /RangeError.*audit/)
  })
})
