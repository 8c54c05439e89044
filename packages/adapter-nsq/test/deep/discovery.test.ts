/** What nsqlookupd says, does not say, and what is made of it. */
import { proxy, start } from "@requeue/brokers"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, assert, beforeEach, describe, test } from "vitest"
import type { NsqOptions } from "../../src/index.ts"
import { channels, register, stored } from "../real/raw.ts"
import { trace } from "../real/traffic.ts"
import { consume, found, measured, now, on, outgoing, publishAll, queueName, until, type Run } from "../world.ts"

const own = await start("nsq", { nodes: 3 })
const lookupd = own.lookupd!
const http = own.nodes.map(({ port }) => `127.0.0.1:${port + 1}`)
const wires = await Promise.all(own.nodes.map(({ port }) => trace(port)))

/** The requests to nsqlookupd. */
const asked: Array<string> = []
const toLookupd = await proxy(lookupd.port + 1, (_, from, bytes) => {
  if (from === "client") asked.push(/^GET (\S+)/.exec(bytes.toString())?.[1] ?? "")
})
afterAll(async () => {
  await Promise.all([...wires, toLookupd].map(({ close }) => close()))
  await own.dispose()
})
const registered = () => register(http, new URL(lookupd.url).host)
beforeEach(registered)

/** nsqd by nsqlookupd, and every connection to them through a wire. */
const wired = (found: NsqOptions.Discovered): NsqOptions.Location => {
  const index = own.nodes.findIndex(({ port }) => port === found.port)
  return { ...found, port: wires[index]!.port }
}
const options: NsqOptions.Options = {
  lookupd: [`127.0.0.1:${toLookupd.port}`],
  lookupdInterval: 100,
  reconnectFirst: 20,
  resolveAddress: wired
}

const connectionsMade = () => wires.reduce((sum, { sent }) => sum + sent("IDENTIFY").length, 0)

/** Until nsqlookupd has been asked for all nsqd, and for topics, so many times more. */
const untilAsked = (times: number) => {
  const from = asked.length
  const count = (path: string) => asked.slice(from).filter((each) => each.startsWith(path)).length
  return until(`${times} more questions`, () => count("/nodes") >= times && count("/lookup") >= 2 * times)
}

describe("an nsqlookupd that is away, and knows nobody when it is back,", () => {
  test(
    "five times stops nothing",
    measured(options, (broker, control) =>
      Effect.gen(function* () {
        const queue = queueName("steady")
        const runs: Array<Run> = []
        let sent = 0
        yield* consume(queue, runs)
        yield* publishAll(broker, queue, ["first"])
        yield* until("the first", () => runs.length === 1)
        // A send that fails ends the test.
        const send = Effect.suspend(() => broker.publish([outgoing(queue, `m${sent++}`)]))
        const sending = yield* Effect.forkScoped(Effect.forever(Effect.andThen(send, Effect.sleep(10))))
        const connections = connectionsMade()
        for (let count = 0; count < 5; count++) {
          yield* Effect.promise(lookupd.kill)
          yield* untilAsked(3)
          yield* Effect.promise(lookupd.start)
          yield* untilAsked(5)
          assert.isUndefined(sending.pollUnsafe(), "a send failed")
        }
        const times = [...runs.map(({ at }) => at), now()]
        yield* Fiber.interrupt(sending)
        yield* until("all of them", () => runs.length >= sent)
        assert.strictEqual(connectionsMade(), connections, "a connection was given up")
        const gaps = times.slice(1).map((at, index) => ({ from: times[index]!, at, late: at - times[index]! }))
        const longest = gaps.reduce((a, b) => (b.late > a.late ? b : a))
        yield* Control.check(control, [{ what: "the message after the longest gap", bound: 300, ...longest }])
        // Where the machine was late, the test begins again.
      }).pipe(Effect.ensuring(Effect.promise(registered)))
    )
  )

  test("while it is away, a consumer starts, and sends arrive, on what is connected", () =>
    on(options, (broker) =>
      Effect.gen(function* () {
        yield* Effect.promise(lookupd.kill)
        const queue = queueName("meanwhile")
        const runs: Array<Run> = []
        yield* publishAll(broker, queue, ["before"])
        yield* consume(queue, runs)
        yield* publishAll(broker, queue, ["after"])
        yield* until("both", () => runs.length === 2)
        yield* Effect.promise(lookupd.start)
      })
    ))
})

test("without any nsqlookupd, an nsqd that is given is used", () =>
  on({ nsqd: [`127.0.0.1:${own.nodes[0]!.port}`], lookupd: ["127.0.0.1:1"] }, (broker) =>
    Effect.gen(function* () {
      const queue = queueName("given")
      const runs: Array<Run> = []
      yield* consume(queue, runs)
      yield* publishAll(broker, queue, ["m"])
      yield* until("a run", () => runs.length === 1)
    })
  ))

describe("an nsqd that is named no more", () => {
  const post = (path: string) =>
    Effect.promise(async () => {
      const { ok, status } = await fetch(`${lookupd.url}${path}`, { method: "POST" })
      assert.isTrue(ok, `${path}: ${status}`)
    })

  test("is used while its connection lives, is left with it, and is used when it is named again", () =>
    on(options, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("unnamed")
        const runs: Array<Run> = []
        yield* consume(queue, runs)
        yield* publishAll(broker, queue, ["first"])
        yield* until("the first", () => runs.length === 1)
        const topics = [queue, `${queue}.requeue.retry`]
        for (const topic of topics) yield* post(`topic/delete?topic=${topic}`)
        yield* untilAsked(4)
        yield* publishAll(broker, queue, ["unnamed"])
        yield* until("the unnamed", () => runs.length === 2)
        const subscriptions = () => wires.flatMap(({ sent }) => sent("SUB")).filter(({ args }) => args[0] === queue)
        assert.lengthOf(subscriptions(), 1)
        for (const { cut } of wires) cut()
        yield* untilAsked(4)
        assert.lengthOf(subscriptions(), 1)
        const [{ http: base } = assert.fail("there is no channel")] = yield* Effect.promise(() => channels(http, queue))
        // A new channel is told to nsqlookupd, with its topic.
        yield* Effect.promise(() =>
          fetch(`http://${base}/channel/create?topic=${queue}&channel=again`, { method: "POST" })
        )
        yield* until("a subscription", () => subscriptions().length === 2)
        yield* publishAll(broker, queue, ["again"])
        yield* until("the one after", () => runs.some(({ id }) => id === "again"))
      })
    ))
})

describe("what nsqlookupd names", () => {
  test("is left out where that is asked for", () =>
    on(
      { ...options, resolveAddress: (found) => (found.port === own.nodes[1]!.port ? wired(found) : undefined) },
      (broker) =>
        Effect.gen(function* () {
          const queue = queueName("chosen")
          const runs: Array<Run> = []
          yield* consume(queue, runs)
          yield* publishAll(broker, queue, ["m"])
          yield* until("a run", () => runs.length === 1)
          const found = yield* Effect.promise(() => channels(http, queue))
          assert.deepStrictEqual([...new Set(found.map((each) => each.http))], [http[1]])
        })
    ))

  test("tells its machine, version and ports, and an answer that is none leaves it out", async () => {
    const seen: Array<NsqOptions.Discovered> = []
    const resolveAddress = (found: NsqOptions.Discovered) => {
      seen.push(found)
      if (found.port === own.nodes[0]!.port) throw new Error("hunter")
      if (found.port === own.nodes[1]!.port) return { host: "", port: 0 } as never
      return found
    }
    await on({ ...options, resolveAddress }, (broker) => broker.publish([outgoing(queueName("told"), "m")]))
    const [port, httpPort] = [own.nodes[2]!.port, own.nodes[2]!.port + 1]
    const last = seen.find((each) => each.port === port)!
    assert.deepInclude(last, { host: "127.0.0.1", port, httpPort, version: "1.3.0" })
    assert.isNotEmpty(last.hostname)
  })
})

test("a publish to each in turn goes to all of them, and to those that are well when one is not", () =>
  on({ ...options, publishOver: "all" }, (broker) =>
    Effect.gen(function* () {
      const queue = queueName("spread")
      const counts = Effect.promise(() => stored(http, queue))
      const send = (count: number) =>
        Effect.forEach(Array.from({ length: count }), (_, index) => broker.publish([outgoing(queue, `m${index}`)]))
      // Those to which a connection is still on its way have no turn yet.
      const isOnAll = Effect.map(
        Effect.andThen(send(3), counts),
        (each) => each.every((count) => count > 0) || undefined
      )
      yield* found("some on each", isOnAll)
      const before = yield* counts
      yield* send(30)
      for (const [index, count] of (yield* counts).entries()) assert.strictEqual(count - before[index]!, 10)
      const total = Effect.map(counts, (each) => each.reduce((sum, count) => sum + count, 0))
      const least = (yield* total) + 30
      wires[0]!.refuse(true)
      wires[0]!.cut()
      yield* send(30)
      wires[0]!.refuse(false)
      assert.isAtLeast(yield* total, least)
    })
  ).finally(() => wires[0]!.refuse(false)))

describe("a consumer makes topics", () => {
  const make = async (queue: string, at: ReadonlyArray<string>) => {
    for (const base of at) {
      for (const path of [`topic/create?topic=${queue}`, `channel/create?topic=${queue}&channel=requeue`]) {
        const { ok } = await fetch(`http://${base}/${path}`, { method: "POST" })
        assert.isTrue(ok)
      }
    }
  }

  /** Consumes a message that an nsqd is given, as a process of its own would. */
  const run = (queue: string, base: string) => {
    const runs: Array<Run> = []
    return on(options, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs)
        yield* Effect.promise(() => fetch(`http://${base}/pub?topic=${queue}`, { method: "POST", body: '"m"' }))
        yield* until("a run", () => runs.length === 1)
      })
    )
  }

  const placesOf = async (queue: string) => {
    const found = await channels(http, queue)
    return [...new Set(found.map((each) => `${each.topic} ${http.indexOf(each.http)}`))].toSorted()
  }

  test("where its own is, and nowhere else", async () => {
    const queue = queueName("settled")
    await make(queue, [http[2]!])
    // Each process has another nsqd to publish to.
    for (let count = 0; count < 4; count++) await run(queue, http[2]!)
    assert.deepStrictEqual(await placesOf(queue), [`${queue} 2`, `${queue}.requeue.dlq 2`, `${queue}.requeue.retry 2`])
  })

  test("where its own can be reached", async () => {
    const queue = queueName("reached")
    await make(queue, http)
    for (const { refuse } of wires.slice(0, 2)) refuse(true)
    try {
      await run(queue, http[2]!)
    } finally {
      for (const { refuse } of wires) refuse(false)
    }
    assert.include(await placesOf(queue), `${queue}.requeue.dlq 2`)
  })

  test("that no connection can be made to leaves it out, and the program goes on", async () => {
    const hosts = ["a\0b", "a\r\nb", "127.0.0.1/x?y#z", "a".repeat(100_000), ""]
    const producers = [
      ...hosts.map((host) => ({ broadcast_address: host, tcp_port: 4150, http_port: 4151 })),
      { broadcast_address: "127.0.0.1", tcp_port: 70_000, http_port: 4151 },
      { broadcast_address: "127.0.0.1", tcp_port: own.nodes[0]!.port, http_port: own.nodes[0]!.port + 1 }
    ]
    const hostile = createServer((_, response) => response.end(JSON.stringify({ producers })))
    hostile.listen(0, "127.0.0.1")
    await once(hostile, "listening")
    const { port } = hostile.address() as AddressInfo
    await on({ lookupd: [`127.0.0.1:${port}`], connectTimeout: 1000 }, (broker) =>
      broker.publish([outgoing(queueName("hostile"), "m")])
    ).finally(() => hostile.close())
  })
})
