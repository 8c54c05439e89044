/**
 * Connections that break in answers, among them those to COMMIT, while backends are terminated and the server is killed: each
 * message has one effect, and sent one message.
 */
import { start, proxy } from "@requeue/brokers"
import { Wait } from "@requeue/conformance"
import { connect, constant } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { Client } from "pg"
import { assert, expect, test, vi } from "vitest"
import { adapter } from "../../src/index.ts"

const count = 400

/** Of how many answers of the server one is lost with its connection. */
const losses = 15

const ignoring = (client: Client): Client => client.on("error", () => {})

/** Whether these bytes end the answer to a statement after which no transaction is open, such as COMMIT. */
const isAnswer = (bytes: Buffer): boolean => bytes.subarray(-6).equals(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]))

test("each message has one effect and sends one message", { timeout: 600_000 }, async () => {
  vi.stubEnv("REQUEUE_POSTGRES_URL", "")
  const server = await start("postgres")
  const [node] = server.nodes
  let [answers, lost] = [0, 0]
  const between = await proxy(node!.port, undefined, undefined, () => (bytes) => {
    if (!isAnswer(bytes) || ++answers % losses !== 0) return bytes
    lost++
    return undefined
  })
  const url = server.url.replace(`:${node!.port}/`, `:${between.port}/`)
  const options = { adapters: [adapter], logger: false } as const
  const run = async <A>(action: (client: Client) => Promise<A>): Promise<A> => {
    const client = ignoring(new Client(server.url))
    await client.connect()
    try {
      return await action(client)
    } finally {
      await client.end()
    }
  }
  const ids = Array.from({ length: count }, (_, index) => `m${index}`)
  const sender = await connect(server.url, options)
  await run((client) => client.query("CREATE TABLE effect (id text)"))
  await sender.sendBatch(
    "orders",
    ids.map((id) => ({ id, body: id }))
  )
  await sender.close()

  const requeue = await connect({ url, lease: 2000, timeout: 2000 }, { ...options, waitForBroker: 60_000 })
  const retry = { maxRetries: 10_000, backoff: constant(20) }
  await requeue.consume("orders", { concurrency: 20, retry, handlerTimeout: 5000 }, async (message) => {
    const client = ignoring(new Client(url))
    try {
      await client.connect()
      await client.query("BEGIN")
      await message.within(client)
      await client.query("INSERT INTO effect VALUES ($1)", [message.id])
      await requeue.within(client).send("receipts", message.id)
      await client.query("COMMIT")
    } finally {
      void client.end().catch(() => {})
    }
  })
  const effects = () => run(async (client) => (await client.query<{ id: string }>("SELECT id FROM effect")).rows)
  const progressed = async (least: number) =>
    Effect.runPromise(Wait.until(`${least} effects`, async () => (await effects()).length >= least))
  for (let step = 1; step <= 6; step++) {
    await progressed((step * count) / 8)
    if (step % 3 !== 0) {
      await run((client) =>
        client.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL"
        )
      )
      continue
    }
    await server.kill()
    await server.start()
  }
  const left = () =>
    run(async (client) => {
      const { rows } = await client.query<{ count: string }>(
        "SELECT count(*) FROM requeue.message WHERE queue <> 'receipts'"
      )
      return Number(rows[0]!.count)
    })
  await Effect.runPromise(Wait.until("an empty queue", async () => (await left()) === 0))
  await requeue.close()
  const receipts = await run(async (client) => {
    const { rows } = await client.query<{ body: Buffer }>("SELECT body FROM requeue.message WHERE queue = 'receipts'")
    return rows.map(({ body }) => String(JSON.parse(body.toString())))
  })
  expect((await effects()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
  expect(receipts.toSorted()).toEqual(ids.toSorted())
  assert.isAbove(lost, 50)
  await between.close()
  await server.dispose()
})
