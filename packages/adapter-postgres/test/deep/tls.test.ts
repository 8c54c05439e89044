/** TLS, with a certificate of an authority that no machine trusts. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Broker as Server, certificate, start } from "@requeue/brokers"
import { type BrokerError } from "@requeue/core"
import { connect, type Requeue } from "@requeue/core/promise"
import { Client } from "pg"
import { afterAll, assert, beforeAll, test, vi } from "vitest"
import { adapter, type PostgresOptions } from "../../src/index.ts"

const folder = mkdtempSync(join(tmpdir(), "requeue-postgres-tls-"))
const authority = certificate("authority")
let server: Server

beforeAll(async () => {
  vi.stubEnv("REQUEUE_POSTGRES_URL", "")
  const { cert, key } = certificate("127.0.0.1", authority)
  for (const [name, text] of Object.entries({ cert, key })) writeFileSync(join(folder, name), text, { mode: 0o600 })
  server = await start("postgres", {
    parameters: { ssl: "on", ssl_cert_file: join(folder, "cert"), ssl_key_file: join(folder, "key") }
  })
  const admin = new Client(server.url)
  await admin.connect()
  const { rows } = await admin.query<{ hba_file: string }>("SHOW hba_file")
  writeFileSync(rows[0]!.hba_file, "hostssl all all all scram-sha-256\n")
  await admin.query("SELECT pg_reload_conf()")
  await admin.end()
})

afterAll(async () => {
  await server.dispose()
  rmSync(folder, { recursive: true })
})

const open = (options: PostgresOptions.Options): Promise<Requeue> =>
  connect({ url: server.url, ...options } as { url: string }, { adapters: [adapter], logger: false, waitForBroker: 0 })

const errorOf = async (options: PostgresOptions.Options): Promise<BrokerError.BrokerError> => {
  const error: unknown = await open(options).then(
    () => undefined,
    (cause: unknown) => cause
  )
  assert.strictEqual((error as Error | undefined)?.name, "BrokerError", String(error))
  return error as BrokerError.BrokerError // By its name.
}

test("without TLS, the server refuses the login, and the remedy names tls", async () => {
  const { message, reason } = await errorOf({})
  assert.strictEqual(reason, "AccessRefused")
  assert.match(message, /set tls: true/)
})

test.each([{ tls: true }, { url: "sslmode=require" }])(
  "an authority that is not trusted is refused: %o",
  async (options) => {
    const { isMisconfigured, message, reason } = await errorOf(
      "url" in options ? { url: `${server.url}?${options.url}` } : options
    )
    assert.deepStrictEqual([reason, isMisconfigured], ["ConnectionFailed", true])
    assert.match(message, /tls\.ca/)
  }
)

test("with its authority, a broker sends and consumes", async () => {
  const requeue = await open({ tls: { ca: authority.cert } })
  const { promise, resolve } = Promise.withResolvers<unknown>()
  await requeue.consume("orders", {}, ({ body }) => resolve(body))
  await requeue.send("orders", 1)
  assert.strictEqual(await promise, 1)
  await requeue.close()
})

test("a certificate of another name is refused", async () => {
  const { isMisconfigured } = await errorOf({
    url: server.url.replace("127.0.0.1", "localhost"),
    tls: { ca: authority.cert }
  })
  assert.isTrue(isMisconfigured)
})
