/** The state of the adapter's two connections, one for consuming and one for publishing. */
import { Broker, BrokerError, Producer } from "@requeue/core"
import { connect, isLive, isReady } from "@requeue/core/promise"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { createServer, type AddressInfo } from "node:net"
import { assert, expect, test } from "vitest"
import { RabbitMqBroker } from "../../src/index.ts"
import type { Live } from "../../src/internal/connect/connection.ts"
import { openChannel } from "../../src/internal/connect/openChannel.ts"
import { apart, shared } from "../real/server.ts"
import { measure, now, outgoing, queueName, until } from "../world.ts"

const one = await shared()

test("a connection that cannot be made again is down since it was lost, and then up since it was made", async () => {
  let refusals = 0
  const log = Logger.layer([
    Logger.make(({ message }) => {
      if (String(message) === "not connected") refusals++
    })
  ])
  const outage = Effect.gen(function* () {
    const broker = yield* RabbitMqBroker.make({ url: one.proxied, reconnectFirst: 20 })
    const first = broker.connection()
    const cut = Date.now()
    one.proxy.refuse(true)
    one.proxy.cut()
    yield* until("the loss to be noticed", () => broker.connection().state === "down")
    // By now, it may have been refused.
    const { because: _, ...lost } = broker.connection()
    yield* until("two attempts of both connections to be refused", () => refusals === 4)
    const { because, ...refused } = broker.connection()
    assert.deepStrictEqual(refused, lost)
    assert.match(because ?? "", /^rabbitmq: connect: ConnectionFailed: /)
    one.proxy.refuse(false)
    const allowed = Date.now()
    yield* until("the connection", () => broker.connection().state === "up")
    yield* broker.publish([outgoing(queueName("up"), "a")])
    const again = broker.connection()
    assert.strictEqual(first.state, "up")
    assert.isTrue(first.since <= cut && cut <= lost.since && lost.since < allowed && allowed <= again.since)
  }).pipe(Effect.ensuring(Effect.sync(() => one.proxy.refuse(false))))
  await Effect.runPromise(Effect.scoped(outage).pipe(Effect.provide(log)))
})

test("what is given up before it was written is told as not sent, and what was written as doubtful", async () => {
  const program = Effect.gen(function* () {
    const { proxied, proxy } = yield* apart(one)
    const broker = yield* RabbitMqBroker.make({ url: proxied })
    const make = Producer.make<string>(queueName("given-up"), { publishTimeout: "500 millis" })
    const producer = yield* Effect.provideService(make, Broker.Broker, broker)
    const told = Effect.map(
      Effect.flip(producer.sendBatch([{ body: "b" }, { body: "c" }])),
      (error) => error instanceof BrokerError.BrokerError && [error.reason, error.entries?.map(({ status }) => status)]
    )
    yield* producer.send("a")
    proxy.blackhole(true)
    assert.deepStrictEqual(yield* told, ["Timeout", ["unknown", "unknown"]])
    proxy.refuse(true)
    proxy.cut()
    yield* until("the loss to be noticed", () => broker.connection().state === "down")
    assert.deepStrictEqual(yield* told, ["ConnectionFailed", ["failed", "failed"]])
  })
  await Effect.runPromise(Effect.scoped(program))
})

/** Longest wait for what must come, in milliseconds. */
const within = { timeout: 60_000 }

test("connect waits for a server that starts later", async () => {
  one.proxy.refuse(true)
  try {
    const waiting = connect(one.proxied, { waitForBroker: "1 minute", logLevel: "None" })
    setTimeout(() => one.proxy.refuse(false), 500)
    await using requeue = await waiting
    assert.strictEqual((await requeue.health()).connection.state, "up")
  } finally {
    one.proxy.refuse(false)
  }
})

test("a readiness probe passes, fails at once while the server cannot be reached, and passes again", (context) =>
  // The controls do not go through the proxy.
  measure(context, { url: one.url }, (_, control) =>
    Effect.gen(function* () {
      const { asked, answered } = yield* Effect.promise(probe)
      const what = "the answer of a probe while the server cannot be reached"
      yield* Control.check(control, [{ what, late: answered - asked, bound: 2000, from: asked, at: answered }])
    })
  ))

const probe = async () => {
  const layer = RabbitMqBroker.layer({ url: one.proxied, reconnectFirst: 20 })
  await using requeue = await connect(layer, { logLevel: "None" })
  await requeue.consume(queueName("probed"), {}, () => {})
  const ready = async () => isReady(await requeue.health())
  await expect.poll(async () => (await requeue.health()).consumers[0]?.counts?.ready, within).toBe(0)
  assert.isTrue(await ready())
  one.proxy.refuse(true)
  one.proxy.cut()
  try {
    await expect.poll(ready, within).toBe(false)
    const asked = now()
    const during = await requeue.health()
    const answered = now()
    assert.deepStrictEqual(
      [during.connection.state, during.consumers[0]?.counts, isLive(during)],
      ["down", undefined, true]
    )
    one.proxy.refuse(false)
    await expect.poll(ready, within).toBe(true)
    return { asked, answered }
  } finally {
    one.proxy.refuse(false)
  }
}

test.for([
  ["write ECONNRESET", "ConnectionLost"],
  ["read ECONNRESET", "ConnectionLost"],
  [`Connection closed: 530 (NOT-ALLOWED) with message "NOT_ALLOWED - vhost 'x' is down"`, "AccessRefused"]
] as const)(
  "a channel of a connection that ended with %s is %s: what was up is lost, not missing",
  async ([end, reason]) => {
    const live = {
      driver: { heard: () => 0, destroy: () => {} },
      isGone: () => true,
      failure: () => new Error(end),
      blockedBy: () => undefined
    } as unknown as Live
    const opening = openChannel(live, { operation: "declare" }, 1000, async () => {
      throw new Error("Channel ended, no reply will be forthcoming")
    })
    const error = await Effect.runPromise(Effect.flip(opening))
    assert.strictEqual(error.reason, reason)
  }
)

test("connectTimeout limits the whole attempt, also where the server writes a byte from time to time", async () => {
  const server = createServer((socket) => {
    const drip = setInterval(() => socket.write("\u0001"), 50)
    socket.on("error", () => {}).on("close", () => clearInterval(drip))
  })
  await new Promise<void>((resume) => server.listen(0, "127.0.0.1", resume))
  const { port } = server.address() as AddressInfo // It listens on TCP.
  for (const scheme of ["amqp", "amqps"]) {
    const made = RabbitMqBroker.make({ url: `${scheme}://127.0.0.1:${port}`, connectTimeout: 500 })
    const error = await Effect.runPromise(Effect.flip(Effect.scoped(made)))
    assert.match(error.message, /ConnectionFailed: /)
  }
  const left = () => new Promise((resume) => server.getConnections((_, count) => resume(count)))
  await Effect.runPromise(until("the sockets to be closed", async () => (await left()) === 0))
  server.close()
})
