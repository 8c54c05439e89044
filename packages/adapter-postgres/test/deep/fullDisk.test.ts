/** A full disk: a small file system in memory, which root can mount. */
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { start } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { type BrokerError } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Client } from "pg"
import { assert, onTestFinished, test, vi } from "vitest"
import { adapter } from "../../src/index.ts"

const mount = (...args: ReadonlyArray<string>): boolean => spawnSync("mount", args).status === 0

test(
  "a full disk refuses sends, loses nothing, and needs no restart once it has space",
  { timeout: 300_000 },
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "requeue-postgres-disk-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    if (!mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", folder))
      return context.skip("only root can mount a file system")
    onTestFinished(() => void spawnSync("umount", [folder]))
    mkdirSync(join(folder, "data"), { mode: 0o700 })
    vi.stubEnv("REQUEUE_POSTGRES_URL", "")
    const server = await start("postgres")
    onTestFinished(() => server.dispose())
    const admin = new Client(server.url)
    await admin.connect()
    await admin.query(`CREATE TABLESPACE small LOCATION '${join(folder, "data")}'`)
    await admin.query("ALTER ROLE requeue SET default_tablespace = small")
    await admin.end()

    const requeue = await connect(server.url, { adapters: [adapter], logger: false })
    const sent: Array<number> = []
    // Text that PostgreSQL cannot compress.
    const body = () => Buffer.from(crypto.getRandomValues(new Uint8Array(30_000))).toString("base64")
    const send = (index: number) =>
      requeue.send("orders", { index, body: body() }).then(
        () => void sent.push(index),
        (error: BrokerError.BrokerError) => error
      )
    let error: BrokerError.BrokerError | undefined
    for (let index = 0; error === undefined && index < 2000; index++) error = (await send(index)) ?? undefined
    assert.strictEqual(error?.reason, "Throttled")
    assert.match(String(error?.message), /Free space/)
    assert.isAbove(sent.length, 50)

    const seen: Array<number> = []
    await requeue.consume("orders", { concurrency: 10 }, async (message) => {
      seen.push((message.body as { readonly index: number }).index)
    })
    assert.isTrue(mount("-o", "remount,size=200m", folder))
    await Effect.runPromise(Wait.until("a send", async () => (await send(-1)) === undefined))
    await Effect.runPromise(Wait.until("all messages", () => new Set(seen).size === new Set(sent).size))
    assert.deepStrictEqual(
      [...new Set(seen)].toSorted((a, b) => a - b),
      [...new Set(sent)].toSorted((a, b) => a - b)
    )
    await requeue.close()
  }
)
