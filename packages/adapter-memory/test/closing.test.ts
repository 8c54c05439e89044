/** What is under way when a connection closes: it ends well, or rejects with an error that says what became of it. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError, Codec, Producer } from "@requeue/core"
import { type Outgoing } from "@requeue/core/port"
import { ConnectionClosed, queue as define } from "@requeue/core/promise"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { MemoryBroker } from "../src/index.ts"
import { open, turns } from "./virtualBroker.ts"

/** A broker that takes so long to confirm. It counts the messages that it was given. */
const slow = (duration: "5 seconds" | "1 hour") => {
  const given = { count: 0 }
  const wrap = (service: Broker.Service): Broker.Service => ({
    ...service,
    publish: (messages) =>
      Effect.suspend(() => {
        given.count += messages.length
        return Effect.andThen(Effect.sleep(duration), service.publish(messages))
      })
  })
  return { given, wrap }
}

/** What became of each send: the reason of its error, or that it was confirmed. */
const outcomes = async (sends: ReadonlyArray<Promise<unknown>>): Promise<Readonly<Record<string, number>>> => {
  const counts: Record<string, number> = {}
  for (const result of await Promise.allSettled(sends)) {
    const error: unknown = result.status === "rejected" ? result.reason : undefined
    const outcome = error instanceof BrokerError.BrokerError ? error.reason : String(error ?? "confirmed")
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

const many = (count: number, send: () => Promise<unknown>) => Array.from({ length: count }, send)

describe("a send that is under way when the connection closes", () => {
  it("is not one whose codec has failed", async () => {
    await using broker = await open()
    const { requeue } = broker
    const encodeMessage = () => Promise.reject(new Error("the store is full"))
    const orders = define("q", { codec: { ...Codec.json, encodeMessage } })
    await requeue.send(orders, 1).then(
      () => assert.fail("it was sent"),
      () => {}
    )
    let isClosed = false
    void requeue.close().then(() => (isClosed = true))
    await turns()
    assert.isTrue(isClosed)
  })

  it("is waited for, also when it has yet to find room", async () => {
    await using broker = await open({}, slow("5 seconds").wrap)
    const sends = outcomes(many(2500, () => broker.requeue.send("q", 1)))
    await broker.finish(broker.requeue.close())
    assert.deepStrictEqual(await sends, { confirmed: 2500 })
    assert.lengthOf(await broker.waiting("q"), 2500)
    assert.strictEqual(broker.now(), 15_000)
  })

  it("is waited for until its time is over, and says whether the broker may have it", async () => {
    const { given, wrap } = slow("1 hour")
    await using broker = await open({}, wrap)
    const sends = outcomes(many(3000, () => broker.requeue.send("q", 1)))
    await broker.finish(broker.requeue.close())
    assert.strictEqual(broker.now(), 30_000)
    assert.deepStrictEqual(await sends, { Timeout: 1000, Throttled: 2000 })
    assert.strictEqual(given.count, 1000)
  })

  it("is waited for no longer than the publishTimeout of the connection, also by those beyond its maxPending", async () => {
    const { given, wrap } = slow("1 hour")
    await using broker = await open({}, wrap, undefined, { publishTimeout: "3 seconds", maxPending: 2 })
    const sends = outcomes(many(5, () => broker.requeue.send("q", 1)))
    await broker.finish(broker.requeue.close())
    assert.strictEqual(broker.now(), 3000)
    assert.deepStrictEqual(await sends, { Timeout: 2, Throttled: 3 })
    assert.strictEqual(given.count, 2)
  })

  it.each([0, 3000])("is cut short when the %d ms of close are over", async (timeout) => {
    const { given, wrap } = slow("1 hour")
    await using broker = await open({}, wrap)
    const sends = many(3000, () => broker.requeue.send("q", 1))
    const settled = outcomes(sends)
    await broker.finish(broker.requeue.close(timeout))
    assert.strictEqual(broker.now(), timeout)
    assert.deepStrictEqual(await settled, { ConnectionLost: 1000, ConnectionFailed: 2000 })
    assert.strictEqual(given.count, 1000)
    const [lost, unsent] = await Promise.all([sends[0], sends[2999]].map((send) => send!.catch(String)))
    assert.strictEqual(
      lost,
      "BrokerError: memory: publish on queue q: ConnectionLost: the connection was closed before the confirmation; the " +
        "message may or may not have been stored. Send the message again with the same id; make handlers idempotent"
    )
    assert.strictEqual(
      unsent,
      "BrokerError: memory: publish on queue q: ConnectionFailed: the connection was closed while the message waited for " +
        "earlier ones; nothing was sent. Send the message again"
    )
  })

  it("was not sent if the adapter says so when it is interrupted, message by message", async () => {
    const error = (reason: BrokerError.Reason) =>
      new BrokerError.BrokerError({ broker: "memory", operation: "publish", reason, detail: "told" })
    await using broker = await open({}, (service) => ({
      ...service,
      publish: (messages) =>
        Effect.onInterrupt(Effect.never, () => {
          const outcome = ({ metadata: { id } }: Outgoing.Outgoing) =>
            id === "stored" ? undefined : error(id === "written" ? "Timeout" : "ConnectionFailed")
          const told = BrokerError.ofBatch(messages.map(outcome))
          return told === undefined ? Effect.void : Effect.fail(told)
        })
    }))
    const ids = ["stored", "written", "unwritten"]
    const sends = ids.map((id) => outcomes([broker.requeue.send("q", 1, { id })]))
    const batch = broker.requeue
      .sendBatch(
        "q",
        ids.map((id) => ({ body: 1, id }))
      )
      .catch((caught: unknown) => caught)
    await turns()
    await broker.finish(broker.requeue.close(0))
    assert.deepStrictEqual(await Promise.all(sends), [
      { ConnectionLost: 1 },
      { ConnectionLost: 1 },
      { ConnectionFailed: 1 }
    ])
    const failed = await batch
    assert.instanceOf(failed, BrokerError.BrokerError)
    assert.deepStrictEqual(
      failed.entries?.map(({ error: told, status }) => [status, told?.reason]),
      [
        ["sent", undefined],
        ["unknown", "ConnectionLost"],
        ["failed", "ConnectionFailed"]
      ]
    )
  })

  it("is cut short by a second close as well", async () => {
    await using broker = await open({}, slow("1 hour").wrap)
    const sent = outcomes([broker.requeue.send("q", 1)])
    const first = broker.requeue.close()
    await turns()
    await broker.finish(broker.requeue.close("1 second"))
    await first
    assert.strictEqual(broker.now(), 1000)
    assert.deepStrictEqual(await sent, { ConnectionLost: 1 })
  })

  it("has a typed error too where the adapter interrupts its own publishes", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const memory = yield* MemoryBroker.make()
        const publish = () =>
          Effect.flatMap(Effect.forkIn(Effect.never, scope), (fiber) => Fiber.join(fiber)) as Effect.Effect<never>
        const producer = yield* Effect.provideService(Producer.make("q"), Broker.Broker, { ...memory, publish })
        const sending = yield* Effect.forkChild(Effect.flip(producer.send(1)), { startImmediately: true })
        yield* Scope.close(scope, Exit.void)
        const error = yield* Fiber.join(sending)
        assert.instanceOf(error, BrokerError.BrokerError)
        assert.strictEqual(error.reason, "ConnectionLost")
      }).pipe(Effect.scoped)
    ))
})

/** A broker that never answers a settlement, until it closes. */
const silent = (service: Broker.Service): Broker.Service => ({
  ...service,
  subscribe: (options) =>
    Effect.map(service.subscribe(options), (subscription) => ({ ...subscription, settle: () => Effect.never }))
})

describe("a settlement that has no answer when the connection closes", () => {
  it.each([
    [0, 1000],
    [1000, 2000],
    [3000, 6000],
    [20_000, 25_000],
    [undefined, 35_000]
  ])("with a time of %d ms is given up after %d ms", async (timeout, end) => {
    await using broker = await open({}, silent)
    let runs = 0
    const worker = await broker.requeue.consume("q", {}, () => void runs++)
    await broker.requeue.send("q", 1)
    await broker.advance(0)
    assert.strictEqual(runs, 1)
    await broker.finish(broker.requeue.close(timeout))
    assert.strictEqual(broker.now(), end)
    assert.strictEqual((await worker.drain()).elapsed, end)
  })

  it("is given up by the drain whose time ends first", async () => {
    await using broker = await open({}, silent)
    const worker = await broker.requeue.consume("q", {}, () => {})
    await broker.requeue.send("q", 1)
    await broker.advance(0)
    const long = worker.drain("1 minute")
    await broker.finish(worker.drain("1 second"))
    await broker.finish(long)
    assert.strictEqual(broker.now(), 2000)
  })
})

it("anything else that is under way when the connection closes rejects with ConnectionClosed", async () => {
  await using broker = await open({}, (service) => ({
    ...service,
    admin: { ...service.admin, counts: () => Effect.never, browse: () => Effect.never }
  }))
  const { requeue } = broker
  const calls = [requeue.counts("q"), deadLetters(requeue, "q.dlq").list()].map((call) => call.catch((e: unknown) => e))
  await turns()
  await broker.finish(requeue.close())
  for (const error of await Promise.all(calls)) assert.instanceOf(error, ConnectionClosed)
})

describe("maxPending", () => {
  it("bounds the sends of a connection, however many definitions and queues they are for", async () => {
    const { given, wrap } = slow("1 hour")
    await using broker = await open({}, wrap)
    const { requeue } = broker
    const sends = outcomes([
      ...many(2000, () => requeue.send(define("q"), 1)),
      ...Array.from({ length: 2000 }, (_, index) => requeue.send(`q${index}`, 1)),
      ...many(1000, () => requeue.send("q", 1))
    ])
    await turns()
    assert.strictEqual(given.count, 1000)
    await broker.finish(requeue.close(0))
    assert.deepStrictEqual(await sends, { ConnectionLost: 1000, ConnectionFailed: 4000 })
  })

  it("bounds those of all producers of a broker; who wants fewer under way waits, and is not overtaken", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.make()
        const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const published: Array<string> = []
        const service: Broker.Service = {
          ...memory,
          publish: ([message]) =>
            Effect.suspend(() => Deferred.await(gates[published.push(message!.metadata.id) - 1] ?? gates[0]!))
        }
        const make = (queue: string, maxPending: number) =>
          Effect.provideService(Producer.make(queue, { maxPending }), Broker.Broker, service)
        const [wide, narrow] = [yield* make("wide", 2), yield* make("narrow", 1)]
        const fork = (send: Effect.Effect<unknown, unknown>) => Effect.forkChild(send, { startImmediately: true })
        const sends = [
          yield* fork(wide.send(1, { id: "a" })),
          yield* fork(wide.send(1, { id: "b" })),
          yield* fork(narrow.send(1, { id: "c" })),
          yield* fork(wide.send(1, { id: "d" }))
        ]
        assert.deepStrictEqual(published, ["a", "b"])
        yield* Deferred.succeed(gates[0]!, undefined)
        yield* Fiber.join(sends[0]!)
        assert.deepStrictEqual(published, ["a", "b"])
        yield* Deferred.succeed(gates[1]!, undefined)
        yield* Fiber.joinAll(sends)
        assert.deepStrictEqual(published, ["a", "b", "c", "d"])
      }).pipe(Effect.scoped)
    ))
})
