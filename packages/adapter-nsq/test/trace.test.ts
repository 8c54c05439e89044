/** Consumer backoff as an nsqd sees it: what RDY, REQ and FIN pass on every connection of a consumer, in their order. */
import * as Backoff from "@requeue/core/Backoff"
import * as Consumer from "@requeue/core/Consumer"
import * as ConsumerBackoff from "@requeue/core/ConsumerBackoff"
import type { Event } from "@requeue/core/Event"
import type { MessageHandler } from "@requeue/core/Handler"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Effect from "effect/Effect"
import { Socket } from "node:net"
import { assert, describe, test, vi } from "vitest"
import { server } from "./server.ts"
import type { Command, Entry } from "./wire.ts"
import { ids, no, on, publishAll, queueName, until } from "./world.ts"

vi.setConfig({ testTimeout: 30_000 })

const one = await server({ nodes: 2 })

type Sent = Command & Entry & { readonly connection: string | number }

/** The commands of all connections that consume this queue, retries included, on every nsqd, in their order. */
const commandsOf = (queue: string): ReadonlyArray<Omit<Sent, "connection"> & { readonly connection: string }> =>
  one.wires
    .flatMap(({ sent }, nsqd) => {
      const own = sent("SUB").filter(({ args }) => args[0]?.startsWith(queue))
      const connections = new Set(own.map(({ connection }) => connection))
      return sent("SUB", "RDY", "REQ", "FIN", "CLS")
        .filter(({ connection }) => connections.has(connection))
        .map((command) => ({ ...command, connection: `${nsqd}:${command.connection}` }))
    })
    .toSorted((a, b) => a.at - b.at)

/**
 * What this process writes to the wires, in the order of its writes: what different connections carry at the same time
 * arrives in any order. Call it before the connections are made.
 */
const watchWrites = () => {
  const written: Array<{ readonly socket: Socket; readonly text: string }> = []
  const ports = new Set<unknown>(one.wires.map(({ port }) => port))
  const { write } = Socket.prototype
  const spy = vi.spyOn(Socket.prototype, "write").mockImplementation(function (this: Socket, ...args) {
    if (ports.has(this.remotePort)) written.push({ socket: this, text: String(args[0]) })
    return write.apply(this, args)
  })
  return { written, stop: () => spy.mockRestore() }
}

interface Moment {
  readonly name: string
  readonly at: number
  /** The RDY of all connections together after this command. */
  readonly ready: number
}

const moments = (queue: string): ReadonlyArray<Moment> => {
  const ready = new Map<string, number>()
  return commandsOf(queue).map(({ args, at, connection, name }) => {
    // A connection that is made anew starts with 0, and those that it replaces are gone.
    if (name === "RDY") ready.set(connection, Number(args[0]))
    return { name, at, ready: [...ready.values()].reduce((sum, each) => sum + each, 0) }
  })
}

const multiplier = 200
/** The first window. */
const wait = 2 * multiplier
// At once, and not after the up to 5 s that an nsqd takes to look at what a new channel has deferred.
const retry = RetryPolicy.make({ maxRetries: 20, backoff: Backoff.constant(0) })

/** A consumer with a backoff, and what it told of that. */
const slowing = (queue: string, concurrency: number, handler: MessageHandler<string>) =>
  Effect.gen(function* () {
    const events: Array<Event> = []
    const succeeded = new Set<string>()
    const entered: Array<{ readonly level: number; readonly wait: number }> = []
    const onEvent = (event: Event) => {
      events.push(event)
      if (event._tag === "Succeeded") succeeded.add(event.id)
      if (event._tag === "BackoffEntered" && event.because === "handler")
        entered.push({ level: event.level, wait: event.wait })
    }
    const consumerBackoff = ConsumerBackoff.make({ multiplier })
    yield* Consumer.start<string>(queue, { retry, concurrency, consumerBackoff, onEvent }, handler)
    return { events, entered, succeeded }
  })

describe("consumer backoff on two nsqd", () => {
  test("RDY 0 goes out on every connection before the REQ that caused it; then RDY 1 on one; then all", async () => {
    const queue = queueName("order")
    const { stop, written } = watchWrites()
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        let failed = false
        const told = yield* slowing(queue, 4, () => {
          if (failed) return Effect.sleep(5)
          failed = true
          return no()
        })
        yield* publishAll(broker, queue, ids(40))
        yield* until("an end of all", () => told.succeeded.size === 40)
        assert.deepStrictEqual(told.entered, [{ level: 1, wait }])
      })
    )
    stop()
    const before = written.slice(0, written.findIndex(({ text }) => text.includes("REQ ")) + 1)
    const consumers = new Set(before.filter(({ text }) => text.includes(`SUB ${queue}`)).map(({ socket }) => socket))
    assert.strictEqual(consumers.size, 4)
    for (const consumer of consumers) {
      const texts = before.filter(({ socket }) => socket === consumer).map(({ text }) => text)
      const [commands] = texts.join("").split("REQ ")
      assert.strictEqual(/.*RDY (\d+)\n/s.exec(commands!)?.[1], "0")
    }

    const all = moments(queue)
    const req = all.findIndex(({ name }) => name === "REQ")
    const full = Math.max(...all.slice(0, req).map(({ ready }) => ready))
    assert.isAtLeast(full, 4)
    const paused = all.findIndex(({ ready }, index) => index >= req - 4 && ready === 0)
    assert.isBelow(all[paused]!.at - all[req]!.at, 20)
    // The others were in flight: their FIN may come while everything is paused.
    const probing = all.findIndex(({ ready }, index) => index > paused && ready > 0)
    assert.strictEqual(all[probing]?.ready, 1)
    assert.isAtLeast(all[probing]!.at - all[req]!.at, wait - 20)
    const probed = all.findIndex(({ name }, index) => index > probing && name === "FIN")
    // Its success and the RDY that this allows are written together.
    const probes = all.slice(paused, probed).filter(({ at }) => at < all[probed]!.at)
    for (const { ready } of probes) assert.isAtMost(ready, 1)
    assert.strictEqual(Math.max(...all.slice(probed).map(({ ready }) => ready)), full)
  })

  test("ten failures in one window raise the level once", async () => {
    const queue = queueName("ten")
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        let running = 0
        const told = yield* slowing(queue, 10, (message) => {
          if (message.attempts > 1) return
          running++
          return Effect.andThen(
            until("ten at once", () => running === 10),
            no()
          )
        })
        yield* publishAll(broker, queue, ids(10))
        yield* until("an end of all", () => told.succeeded.size === 10)
        assert.deepStrictEqual(told.entered, [{ level: 1, wait }])
      })
    )
    const all = moments(queue)
    const reqs = all.filter(({ name }) => name === "REQ")
    assert.strictEqual(reqs.length, 10)
    const paused = all.find(({ at, ready }) => at >= reqs[0]!.at - 5 && ready === 0)
    assert.isBelow(paused!.at - reqs[0]!.at, 20)
    const probing = all.find(({ at, ready }) => at > paused!.at && ready > 0)
    for (const { at } of reqs) assert.isBelow(at, probing!.at)
    assert.isAtLeast(probing!.at - reqs[0]!.at, wait - 20)
    // The level after would wait twice as long.
    assert.isBelow(probing!.at - reqs[0]!.at, 2 * wait)
  })

  test.each(["paused", "probing"])("while %s it survives a reconnect: the first RDY is 1, not full", async (state) => {
    const queue = queueName(state)
    let cutAt = 0
    let probed = 0
    // What was in flight on a connection that is cut comes again when its time is over.
    await on({ ...one.wired, messageTimeout: 1500 }, (broker) =>
      Effect.gen(function* () {
        let runs = 0
        const probe = Promise.withResolvers<void>()
        const told = yield* slowing(queue, 4, () => {
          runs++
          if (runs === 1) return no()
          // What was in flight as the first one failed says nothing of the backoff.
          if (told.entered.length === 0 || cutAt > 0 || state === "paused") return
          return probe.promise
        })
        yield* publishAll(broker, queue, ids(1))
        yield* until("a backoff", () => told.entered.length === 1)
        if (state === "probing") yield* until("a probe", () => runs === 2)
        cutAt = performance.now()
        for (const wire of one.wires) wire.cut()
        probe.resolve()
        yield* until("a success", () => told.succeeded.size === 1)
        probed = performance.now()
        yield* publishAll(broker, queue, ids(20, "n"))
        yield* until("an end of all", () => told.succeeded.size === 21)
      })
    )
    const after = commandsOf(queue).filter(({ at, name }) => at > cutAt && name === "RDY")
    const first = after.findIndex(({ args }) => args[0] !== "0")
    assert.deepStrictEqual(after[first]?.args, ["1"])
    const ready = new Map<string, number>()
    const sums = after.map(({ args, at, connection }) => {
      ready.set(connection, Number(args[0]))
      return { at, sum: [...ready.values()].reduce((total, each) => total + each, 0) }
    })
    for (const { at, sum } of sums) if (at < probed - 50) assert.isAtMost(sum, 1)
    assert.isAtLeast(Math.max(...sums.map(({ sum }) => sum)), 4)
  })
})

describe("a requeue without backoff", () => {
  test("leaves RDY as it is", async () => {
    const queue = queueName("uncounted")
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        const told = yield* slowing(queue, 4, (message) => {
          if (message.attempts <= 2) message.retry({ delay: 0, backoff: false })
        })
        yield* publishAll(broker, queue, ids(20))
        yield* until("an end of all", () => told.succeeded.size === 20)
        assert.deepStrictEqual(told.entered, [])
        // Before the consumer ends, which takes RDY away.
        const all = moments(queue)
        const [first, last] = [all.findIndex(({ name }) => name === "REQ"), all.length]
        assert.isAtLeast(first, 0)
        for (const { ready } of all.slice(first, last)) assert.isAtLeast(ready, 1)
      })
    )
  })

  test("as the answer to a probe opens the same window again, and never hangs", async () => {
    const queue = queueName("probed")
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        let runs = 0
        const told = yield* slowing(queue, 1, (message) => {
          runs++
          if (runs === 1) return no()
          return runs <= 3 ? message.retry({ delay: 0, backoff: false }) : undefined
        })
        yield* publishAll(broker, queue, ids(1))
        yield* until("a success", () => told.succeeded.size === 1)
        yield* publishAll(broker, queue, ids(20, "n"))
        yield* until("an end of all", () => told.succeeded.size === 21)
        assert.deepStrictEqual(told.entered, [
          { level: 1, wait },
          { level: 1, wait },
          { level: 1, wait }
        ])
        assert.strictEqual(told.events.filter(({ _tag }) => _tag === "BackoffLeft").length, 1)
      })
    )
    const requeues = commandsOf(queue).filter(({ name }) => name === "REQ")
    assert.strictEqual(requeues.length, 3)
    const [first, second, third] = requeues.map(({ at }) => at)
    assert.isAtLeast(second! - first!, wait - 20)
    assert.isAtLeast(third! - second!, wait - 20)
    assert.isBelow(third! - second!, 2 * wait)
  })
})
