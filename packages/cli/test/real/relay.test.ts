/** `requeue relay` as a process, from PostgreSQL to RabbitMQ: SIGTERM in the middle repeats and loses no message. */
import { proxy, start } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import { randomUUID } from "node:crypto"
import { assert, it, onTestFinished } from "vitest"
import { type Circumstances, program } from "../requeue.ts"
import { open } from "./brokers.ts"

const [outbox, queue] = ["requeue.outbox", "jobs"]

/** In the bodies of all messages. */
const marker = "to be relayed"

/** Opens a server and a connection for the test. */
const opened = async (name: "postgres" | "rabbitmq") => {
  const { dispose, url } = name === "postgres" ? await start(name) : await open(name)
  const address = new URL(url)
  if (name === "postgres") address.searchParams.set("schema", `relay-${randomUUID()}`)
  const connection = await connect(address.href, { logLevel: "None" })
  onTestFinished(async () => {
    await connection.close()
    await dispose()
  })
  return { url: address.href, connection }
}

it("publishes each message once, although SIGTERM interrupts it", async () => {
  const [store, broker] = await Promise.all([opened("postgres"), opened("rabbitmq")])
  const ids = Array.from({ length: 1000 }, (_, index) => `m${index}`)
  const headers = { "requeue-outbox": JSON.stringify({ queue }) }
  await store.connection.sendBatch(
    outbox,
    ids.map((id) => ({ id, body: marker, headers }))
  )

  const [published, signaled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const target = new URL(broker.url)
  const slow = await proxy(Number(target.port), undefined, (_, hold) => (bytes) => {
    if (bytes.includes(marker)) {
      hold(signaled.promise)
      published.resolve()
    }
    return undefined
  })
  onTestFinished(slow.close)
  target.port = String(slow.port)

  const relay = async (url: string, flags: ReadonlyArray<string>, circumstances?: Circumstances) => {
    const { both, code, stdout } = await program(
      ["relay", "--url", url, "--store", store.url, "--json", ...flags],
      circumstances
    )
    assert.strictEqual(code, 0, both)
    const { sum }: { readonly sum?: object } = JSON.parse(stdout.trimEnd().split("\n").at(-1)!)
    const { inFlight, ready = 0 } = await store.connection.counts(outbox)
    assert.strictEqual(inFlight, 0)
    return { sum, ready }
  }
  const interrupted = await relay(target.href, [], {
    signal: "SIGTERM",
    // The relay waits for the broker's confirmations until it has the signal.
    interruption: async () => {
      await published.promise
      setImmediate(() => signaled.resolve())
    }
  })
  assert.isAbove(interrupted.ready, 0)
  assert.deepStrictEqual(interrupted.sum, { published: ids.length - interrupted.ready, deadLettered: 0 })

  const rest = await relay(broker.url, ["--until-empty"])
  assert.deepStrictEqual(rest, { sum: { published: interrupted.ready, deadLettered: 0 }, ready: 0 })
  const relayed = await deadLetters(broker.connection, queue).list({ limit: 2 * ids.length })
  assert.deepStrictEqual(relayed.map(({ id }) => id).toSorted(), ids.toSorted())
})
