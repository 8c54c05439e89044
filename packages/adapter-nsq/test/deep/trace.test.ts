/** Consumer backoff as an nsqd sees it: what RDY, REQ and FIN pass on every connection of a consumer, in their order. */
import { Backoff, Consumer, ConsumerBackoff, type Event, type Handler, RetryPolicy } from "@requeue/core"
import { Control } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { Socket } from "node:net"
import { afterAll, assert, beforeAll, describe, test, vi } from "vitest"
import { server } from "./server.ts"
import { ids, measured, no, on, publishAll, queueName, until, now } from "../world.ts"

vi.setConfig({ testTimeout: 30_000 })

const one = await server({ nodes: 2 })

interface Written {
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly socket: Socket
  readonly at: number
  /** Its place among all that is written. */
  readonly place: number
  /** The same for all that is written by code that runs without a break. */
  readonly burst: number
}

/** The driver's own, by which a queue's connections are known. */
const isSub = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 4)).equals(Buffer.from("SUB "))

/**
 * What is written to all connections, in the order of the writes: what different connections carry at the same time
 * arrives in any order. Only the adapter writes text; the driver writes bytes, and the wires pass them on.
 */
const written: Array<Written> = []
// oxlint-disable-next-line typescript/unbound-method -- it is called with its socket
const write = Socket.prototype.write
let burst = 0
let isBursting = false

beforeAll(() => {
  vi.spyOn(Socket.prototype, "write").mockImplementation(function (this: Socket, ...args: [any, ...Array<any>]) {
    const text = typeof args[0] === "string" || isSub(args[0]) ? String(args[0]) : ""
    if (text !== "") {
      // A machine that stalls puts whatever timers do into one turn of the event loop, but never into one burst.
      if (!isBursting) queueMicrotask(() => (isBursting = false))
      if (!isBursting) burst++
      isBursting = true
      for (const line of text.split("\n")) {
        const [name = "", ...rest] = line.split(" ")
        written.push({ name, args: rest, socket: this, at: now(), place: written.length, burst })
      }
    }
    return write.apply(this, args as never)
  })
})
afterAll(() => void vi.restoreAllMocks())

/** The commands of all connections made since then that consume this queue, retries included, in their order. */
const commandsOf = (queue: string, from = 0): ReadonlyArray<Written> => {
  const own = written.filter(({ args, at, name }) => name === "SUB" && at > from && args[0]?.startsWith(queue))
  const sockets = new Set(own.map(({ socket }) => socket))
  return written.filter(({ name, socket }) => sockets.has(socket) && ["SUB", "RDY", "REQ", "FIN", "CLS"].includes(name))
}

interface Moment extends Written {
  /** The RDY of all connections together after this command. While a credit moves, it is lower for as long as a burst. */
  readonly ready: number
}

const moments = (queue: string, from = 0): ReadonlyArray<Moment> => {
  const ready = new Map<Socket, number>()
  return commandsOf(queue, from).map((command) => {
    if (command.name === "RDY") ready.set(command.socket, Number(command.args[0]))
    return { ...command, ready: [...ready.values()].reduce((sum, each) => sum + each, 0) }
  })
}

const multiplier = 400
/** The first window. */
const wait = 2 * multiplier
// At once, and not after the up to 5 s that an nsqd takes to look at what a new channel has deferred.
const retry = RetryPolicy.make({ maxRetries: 20, backoff: Backoff.constant(0) })

/** A consumer with a backoff, and what it told of that. */
const slowing = (queue: string, concurrency: number, handler: Handler.MessageHandler<string>) =>
  Effect.gen(function* () {
    const events: Array<Event.Event> = []
    const succeeded = new Set<string>()
    const entered: Array<{ readonly level: number; readonly wait: number }> = []
    const paused = Promise.withResolvers<void>()
    /** The place of what is written next, each time that it has ended. */
    const left: Array<number> = []
    const onEvent = (event: Event.Event) => {
      events.push(event)
      if (event._tag === "Succeeded") succeeded.add(event.id)
      if (event._tag === "BackoffLeft" && event.because === "handler") left.push(written.length)
      if (event._tag === "BackoffEntered" && event.because === "handler") {
        entered.push({ level: event.level, wait: event.wait })
        paused.resolve()
      }
    }
    const consumerBackoff = ConsumerBackoff.nsq({ multiplier })
    const { stats } = yield* Consumer.start<string>(queue, { retry, concurrency, consumerBackoff, onEvent }, handler)
    return { events, entered, left, paused: paused.promise, succeeded, stats }
  })

describe("consumer backoff on two nsqd", () => {
  test("RDY 0 goes out on every connection before the REQ that caused it; then RDY 1 on one; then all", async () => {
    const queue = queueName("order")
    let [failedAt, probed, left] = [0, 0, 0]
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        const four = Promise.withResolvers<void>()
        let runs = 0
        const told = yield* slowing(queue, 4, (): Promise<void> | undefined => {
          runs++
          if (runs === 4) four.resolve()
          if (runs === 5) probed = written.length
          if (runs > 4) return undefined
          // The others are in flight as the first one fails, and nothing else is: the probe needs a credit of its own.
          if (runs > 1) return told.paused
          return four.promise.then(() => {
            failedAt = now()
            throw new Error("no")
          })
        })
        yield* publishAll(broker, queue, ids(4))
        yield* until("a pause", () => told.entered.length === 1)
        yield* publishAll(broker, queue, ids(36, "n"))
        yield* until("an end of all", () => told.succeeded.size === 40)
        assert.deepStrictEqual(told.entered, [{ level: 1, wait }])
        assert.lengthOf(told.left, 1)
        left = told.left[0]!
      })
    )
    const all = moments(queue)
    const req = all.findIndex(({ name }) => name === "REQ")
    const before = all.slice(0, req).filter(({ name }) => name === "RDY")
    const consumers = new Set(before.map(({ socket }) => socket))
    assert.strictEqual(consumers.size, 4)
    for (const consumer of consumers) {
      assert.deepStrictEqual(before.findLast(({ socket }) => socket === consumer)!.args, ["0"])
    }

    const full = Math.max(...all.slice(0, req).map(({ ready }) => ready))
    assert.isAtLeast(full, 4)
    assert.strictEqual(all[req]!.ready, 0)
    // The others were in flight: their FIN comes while everything is paused.
    const probing = all.findIndex(({ ready }, index) => index > req && ready > 0)
    assert.lengthOf(
      all.slice(0, probing).filter(({ name }) => name === "FIN"),
      3
    )
    assert.strictEqual(all[probing]?.ready, 1)
    assert.isAtLeast(all[probing]!.at - failedAt, wait)
    // What the probe's success allows is written before its own FIN.
    assert.isAbove(probed, all[probing]!.place)
    assert.isAtLeast(left, probed)
    for (const { place, ready } of all.slice(req)) if (place < left) assert.isAtMost(ready, 1)
    const after = all.filter(({ place }) => place >= left)
    assert.strictEqual(Math.max(...after.map(({ ready }) => ready)), full)
  })

  test(
    "ten failures in one window raise the level once",
    measured(one.wired, (broker, control) =>
      Effect.gen(function* () {
        const queue = queueName("ten")
        let [running, failedAt] = [0, 0]
        const told = yield* slowing(queue, 10, (message) => {
          if (message.attempts > 1) return
          running++
          return Effect.andThen(
            until("ten at once", () => running >= 10),
            Effect.suspend(() => {
              failedAt ||= now()
              return no()
            })
          )
        })
        yield* publishAll(broker, queue, ids(10))
        const scheduled = () => told.events.filter(({ _tag }) => _tag === "RetryScheduled").length
        yield* until("ten failures", () => scheduled() === 10)
        assert.strictEqual(told.stats().backoffLevel, 1)
        yield* until("an end of all", () => told.succeeded.size === 10)
        assert.deepStrictEqual(told.entered, [{ level: 1, wait }])
        const all = moments(queue)
        const reqs = all.filter(({ name }) => name === "REQ")
        assert.strictEqual(reqs.length, 10)
        for (const { ready } of reqs) assert.strictEqual(ready, 0)
        const { at } = all.find((moment) => moment.at > reqs[0]!.at && moment.ready > 0)!
        assert.isAtLeast(at - failedAt, wait)
        // The level after would wait twice as long.
        yield* Control.check(control, [
          { what: "the probe", late: at - failedAt - wait, bound: wait, from: failedAt, at }
        ])
      })
    )
  )

  test.each(["paused", "probing"])("while %s it survives a reconnect: the first RDY is 1, not full", async (state) => {
    const queue = queueName(state)
    let [cutAt, left] = [0, 0]
    /** The place of what is written next as each run begins. */
    const began: Array<number> = []
    // What was in flight on a connection that is cut comes again when its time is over.
    await on({ ...one.wired, messageTimeout: 1500 }, (broker) =>
      Effect.gen(function* () {
        const old = Promise.withResolvers<void>()
        const told = yield* slowing(queue, 4, () => {
          began.push(written.length)
          if (began.length === 1) return no()
          return state === "probing" && began.length === 2 ? old.promise : undefined
        })
        yield* publishAll(broker, queue, ids(1))
        yield* until("a backoff", () => told.entered.length === 1)
        if (state === "probing") yield* until("a probe", () => began.length === 2)
        cutAt = now()
        for (const wire of one.wires) wire.cut()
        yield* publishAll(broker, queue, ids(20, "n"))
        yield* until("an end of the backoff", () => told.left.length > 0)
        old.resolve()
        yield* until("an end of all", () => told.succeeded.size === 21)
        assert.lengthOf(told.left, 1)
        left = told.left[0]!
      })
    )
    // The handler of the old probe is still at work, and takes no room from the new one: its message may have come again.
    const before = state === "probing" ? 2 : 1
    assert.lengthOf(
      began.filter((place) => place <= left),
      1 + before
    )
    const rdy = commandsOf(queue, cutAt).filter(({ args, name }) => name === "RDY" && args[0] !== "0")
    assert.deepStrictEqual(rdy[0]?.args, ["1"])
    for (const { place, ready } of moments(queue, cutAt)) if (place < left) assert.isAtMost(ready, before)
    assert.isTrue(rdy.some(({ args }) => Number(args[0]) > 1))
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
        const first = all.findIndex(({ name }) => name === "REQ")
        assert.isAtLeast(first, 0)
        const atEnds = all.filter(({ burst }, index) => index >= first && all[index + 1]?.burst !== burst)
        for (const { ready } of atEnds) assert.isAtLeast(ready, 1)
      })
    )
  })

  test("as the answer to a probe opens the same window again, and never hangs", async () => {
    const queue = queueName("probed")
    const began: Array<number> = []
    await on(one.wired, (broker) =>
      Effect.gen(function* () {
        let runs = 0
        const told = yield* slowing(queue, 1, (message) => {
          runs++
          began.push(now())
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
    assert.strictEqual(commandsOf(queue).filter(({ name }) => name === "REQ").length, 3)
    const [first, second, third] = began
    assert.isAtLeast(second! - first!, wait)
    assert.isAtLeast(third! - second!, wait)
  })
})

describe("a copy", () => {
  test.each(["retry", "dlq"])("into the topic of %s is stored before its original is finished", async (into) => {
    const queue = queueName("copied")
    const ended: Array<string> = []
    const onEvent = (event: Event.Event) => void (event._tag === "DeadLettered" && ended.push(event.id))
    await on({ ...one.wired, retry: "exact" }, (broker) =>
      Effect.gen(function* () {
        const once = RetryPolicy.make({ maxRetries: into === "retry" ? 1 : 0, backoff: Backoff.constant(10) })
        yield* Consumer.start<string>(queue, { retry: once, onEvent }, no)
        yield* publishAll(broker, queue, ["m"])
        yield* until("a dead letter", () => ended.length === 1)
      })
    )
    const entries = one.wires.flatMap((wire, nsqd) => wire.entries.map((entry) => ({ ...entry, nsqd })))
    const copy = entries.find(
      ({ from, name, ...entry }) =>
        from === "client" && /^[DM]?PUB$/.test(name) && "args" in entry && entry.args[0] === `${queue}.requeue.${into}`
    )
    assert.isDefined(copy)
    const stored = entries.find(
      ({ at, connection, name, nsqd }) =>
        name === "response" && nsqd === copy!.nsqd && connection === copy!.connection && at > copy!.at
    )
    const finished = commandsOf(queue).filter(({ name }) => name === "FIN")
    assert.strictEqual(finished.length, into === "retry" ? 2 : 1)
    assert.isAbove(finished[0]!.at, stored!.at)
  })
})
