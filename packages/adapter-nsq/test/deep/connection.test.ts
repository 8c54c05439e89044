/** What the adapter says of its connections: one to publish, and one for each topic on each nsqd. */
import { proxy, start } from "@requeue/brokers"
import type { Broker } from "@requeue/core"
import { connect, isLive, isReady } from "@requeue/core/promise"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { createServer, type AddressInfo } from "node:net"
import { afterAll, assert, beforeEach, describe, expect, test } from "vitest"
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { channels, register } from "../real/raw.ts"
import { server } from "./server.ts"
import { consume, measured, on, outgoing, queueName, until, type Run, now } from "../world.ts"

const two = await server({ nodes: 2 })
const ways = await Promise.all(two.broker.nodes.map(({ port }) => proxy(port)))
const [way, other] = ways as [(typeof ways)[0], (typeof ways)[0]]
afterAll(() => Promise.all(ways.map(({ close }) => close())))

const through = (...chosen: typeof ways): NsqOptions.Options => ({
  nsqd: chosen.map(({ port }) => `127.0.0.1:${port}`),
  nsqdHttp: chosen.map((each) => two.http[ways.indexOf(each)]!),
  reconnectFirst: 20
})

const lose = (...lost: typeof ways): void => {
  for (const { cut, refuse } of lost) {
    refuse(true)
    cut()
  }
}

const regain = (): void => {
  for (const { refuse } of ways) refuse(false)
}

test("a connection that cannot be made again is down since it was lost, and then up since it was made", async () => {
  const seen = await on({ ...through(way), authSecret: "hunter2" }, (broker) =>
    Effect.gen(function* () {
      const first = broker.connection()
      const cut = Date.now()
      lose(way)
      yield* until("the loss to be noticed", () => broker.connection().state === "down")
      const lost = broker.connection()
      yield* Effect.sleep(100)
      yield* until("a refusal", () => broker.connection().because !== undefined)
      const still = broker.connection()
      regain()
      const allowed = Date.now()
      yield* until("the connection", () => broker.connection().state === "up")
      yield* broker.publish([outgoing(queueName("up"), "a")])
      return { first, cut, lost, still, allowed, again: broker.connection() }
    })
  ).finally(regain)
  const { again, allowed, cut, first, lost, still } = seen
  assert.strictEqual(first.state, "up")
  assert.deepStrictEqual([still.state, still.since], ["down", lost.since])
  assert.include(still.because, `nsqd 127.0.0.1:${way.port}: `)
  assert.notInclude(still.because, "hunter2")
  assert.hasAllKeys(again, ["state", "since"])
  assert.isTrue(first.since <= cut && cut <= lost.since && lost.since < allowed && allowed <= again.since)
})

test("of two nsqd one is enough, and the second that is lost is the loss", async () => {
  const queue = queueName("either")
  const runs: Array<Run> = []
  await on(through(way, other), (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, runs)
      const first = broker.connection()
      assert.strictEqual(first.state, "up")
      lose(way)
      yield* broker.publish([outgoing(queue, "by the other one")])
      yield* until("the message", () => runs.length === 1)
      assert.deepStrictEqual(broker.connection(), first)
      lose(other)
      yield* until("both to be missed", () => broker.connection().state === "down")
      regain()
      yield* until("one of them", () => broker.connection().state === "up")
      assert.isAbove(broker.connection().since, first.since)
    })
  ).finally(regain)
})

test("a subscription that begins, or ends, is no loss", async () => {
  const queue = queueName("unsubscribed")
  await on(through(way), (broker) =>
    Effect.gen(function* () {
      const before = broker.connection()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* consume(queue, [])
          const subscribed = broker.connection()
          assert.strictEqual(subscribed.state, "up")
          assert.isAtLeast(subscribed.since, before.since)
        })
      )
      assert.deepStrictEqual(broker.connection(), before)
    })
  )
})

describe("with nsqlookupd", async () => {
  const own = await start("nsq", { nodes: 2 })
  afterAll(() => own.dispose())
  const lookupd = new URL(own.managementUrl!).host
  const http = own.nodes.map(({ port }) => `127.0.0.1:${port + 1}`)
  beforeEach(() => register(http, lookupd))
  const options = { lookupd: [lookupd], lookupdInterval: 60_000, reconnectFirst: 20 }

  const upAfter = ({ connection }: Broker.Service, time: number) =>
    until("a connection", () => connection().state === "up" && connection().since >= time)

  test("another nsqd takes the place of the one that is published to, unasked", () =>
    on(options, (broker) =>
      Effect.gen(function* () {
        const missed = until("all to be missed", () => broker.connection().state === "down")
        yield* Effect.promise(own.kill)
        yield* missed
        for (const { kill, start: begin } of own.nodes) {
          const before = Date.now()
          yield* Effect.promise(begin)
          yield* upAfter(broker, before)
          yield* Effect.promise(kill)
          yield* missed
        }
        yield* Effect.promise(own.start)
      })
    ))

  test("a subscription without its nsqd is a loss, though there is another one to publish to", () =>
    on(options, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("attended")
        yield* consume(queue, [])
        const [channel] = yield* Effect.promise(() => channels(http, queue))
        const attended = own.nodes[http.indexOf(channel!.http)]!
        yield* Effect.promise(attended.kill)
        yield* until("it to be missed", () => broker.connection().state === "down")
        yield* broker.publish([outgoing(queueName("elsewhere"), "a")])
        assert.strictEqual(broker.connection().state, "down")
        const before = Date.now()
        yield* Effect.promise(attended.start)
        yield* upAfter(broker, before)
      })
    ))
})

test("connect waits for an nsqd that starts later", async () => {
  lose(way)
  try {
    const waiting = connect(NsqBroker.layer(through(way)), { waitForBroker: "1 minute", logLevel: "None" })
    setTimeout(regain, 500)
    await using requeue = await waiting
    assert.strictEqual((await requeue.health()).connection.state, "up")
  } finally {
    regain()
  }
})

const patience = { timeout: 60_000, message: "what the probe says" }

/** What a probe says, and how long it took to say so while nsqd could not be reached. */
const probe = async (): Promise<Control.Arrival> => {
  const queue = queueName("probed")
  await using requeue = await connect(NsqBroker.layer(through(way)), { logLevel: "None" })
  await requeue.consume(queue, {}, () => {})
  const before = await requeue.health()
  lose(way)
  try {
    const ready = async () => isReady(await requeue.health())
    await expect.poll(ready, patience).toBe(false)
    const from = now()
    const during = await requeue.health()
    const at = now()
    assert.deepStrictEqual([during.connection.state, isLive(during)], ["down", true])
    regain()
    await expect.poll(ready, patience).toBe(true)
    assert.deepStrictEqual(before.consumers[0]?.counts?.ready, 0)
    assert.isTrue(isReady(before))
    // It asks for numbers for a second at most.
    return { what: "the answer to a probe", late: at - from, bound: 2000, from, at }
  } finally {
    regain()
  }
}

test(
  "a readiness probe passes, fails while nsqd cannot be reached, and passes again",
  measured(two.direct, (_, control) =>
    Effect.flatMap(Effect.promise(probe), (answer) => Control.check(control, [answer]))
  )
)

test("attempts to connect that end before nsqd answers keep no timers", async () => {
  const closing = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => closing.listen(0, "127.0.0.1", resolve))
  const { port } = closing.address() as AddressInfo // It listens on TCP.
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length
  const before = timers()
  const options = { nsqd: [`127.0.0.1:${port}`], http: false, connectTimeout: 1000 }
  for (let attempt = 0; attempt < 5; attempt++) await Effect.runPromiseExit(Effect.scoped(NsqBroker.make(options)))
  closing.close()
  assert.isAtMost(timers(), before + 1)
})
