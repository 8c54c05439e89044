/** Publishing on real servers that answer late, not at all, or are away. */
import { proxy, wire } from "@requeue/brokers"
import { BrokerError, Producer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import { stored } from "../real/raw.ts"
import { server } from "./server.ts"
import { readCommand } from "../real/traffic.ts"
import { consume, found, no, now, on, outgoing, queueName, type Run, until } from "../world.ts"

const two = await server({ nodes: 2 })
const [first] = two.broker.nodes
const publishTimeout = 2000

describe("a publish", async () => {
  const http = await proxy(first!.port + 1)
  const tcp = await wire(first!.port, () => (input) => {
    const read = readCommand(input)
    return read && { size: read.size, name: read.part?.name ?? "", about: "" }
  })
  afterAll(async () => {
    await http.close()
    await tcp.close()
  })
  const options = { nsqd: [`127.0.0.1:${tcp.port}`], nsqdHttp: [`127.0.0.1:${http.port}`], publishTimeout }

  test("takes its time-out and no more, when the topic that it needs cannot be made; it is told as not sent", async () => {
    const queue = queueName("unmade")
    await on(options, (broker) =>
      Effect.gen(function* () {
        http.blackhole(true)
        const from = now()
        const error = yield* Effect.flip(broker.publish([outgoing(queue, "a")]))
        const took = now() - from
        http.blackhole(false)
        assert.strictEqual(error.reason, "ConnectionFailed")
        assert.isAtLeast(took, publishTimeout - 1)
        assert.isBelow(took, 2 * publishTimeout)
        assert.deepStrictEqual(yield* Effect.promise(() => stored(two.http, queue)), [0, 0])
      })
    )
  })

  test("that nsqd has stored, and whose answer is lost with all further connections, may be stored: once its time is over", async () => {
    const queue = queueName("stored")
    await on(options, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        const lost = tcp.loseNext(({ name }) => name === "PUB", "answer")
        tcp.refuse(true)
        const from = now()
        const error = yield* Effect.flip(broker.publish([outgoing(queue, "b")]))
        const took = now() - from
        tcp.refuse(false)
        lost.end()
        assert.strictEqual(error.reason, "ConnectionLost")
        assert.isBelow(took, 2 * publishTimeout)
        assert.deepStrictEqual(yield* Effect.promise(() => stored(two.http, queue)), [2, 0])
      })
    )
  })
})

describe("a publish that has to wait", async () => {
  const tcp = await proxy(first!.port)
  afterAll(() => tcp.close())
  const options = { nsqd: [`127.0.0.1:${tcp.port}`], nsqdHttp: [two.http[0]], publishTimeout, maxUnconfirmed: 3 }

  test("and is given up before it was written is told as not sent, and what was written as doubtful", async () => {
    const queue = queueName("given-up")
    await on(options, (broker) =>
      Effect.gen(function* () {
        const producer = yield* Producer.make<string>(queue, { publishTimeout: "500 millis" })
        const failed = Effect.all(
          [Effect.flip(producer.send("b")), Effect.flip(producer.sendBatch([{ body: "c" }, { body: "d" }]))],
          { concurrency: "unbounded" }
        )
        const told = Effect.map(failed, (errors) =>
          errors.map((error) =>
            error instanceof BrokerError.BrokerError
              ? [error.reason, error.entries?.map(({ status }) => status)]
              : error
          )
        )
        yield* producer.send("a")
        tcp.blackhole(true)
        assert.deepStrictEqual(yield* told, [
          ["Timeout", undefined],
          ["Timeout", ["unknown", "unknown"]]
        ])
        tcp.refuse(true)
        tcp.cut()
        yield* until("the loss is noticed", () => broker.connection().state === "down")
        assert.deepStrictEqual(yield* told, [
          ["ConnectionFailed", undefined],
          ["ConnectionFailed", ["failed", "failed"]]
        ])
        tcp.blackhole(false)
        tcp.refuse(false)
      })
    )
  })

  test.each([undefined, "1 second"] as const)(
    "for the room of others that are given up is told as not sent, with a delay of %s as well",
    async (delay) => {
      const queue = queueName("room")
      await on(options, () =>
        Effect.gen(function* () {
          const producer = yield* Producer.make<string>(queue, { publishTimeout: "500 millis" })
          yield* producer.send("a")
          const send = (id: string) => producer.send(id, delay === undefined ? {} : { delay })
          const all = ["b", "c", "d", "e", "f", "g", "h"]
          tcp.blackhole(true)
          const errors = yield* Effect.forEach(all, (id) => Effect.flip(send(id)), { concurrency: "unbounded" })
          tcp.blackhole(false)
          assert.deepStrictEqual(
            errors.map((error): unknown => error instanceof BrokerError.BrokerError && error.reason),
            [...Array<unknown>(3).fill("Timeout"), ...Array<unknown>(4).fill("ConnectionFailed")]
          )
          // All of the room is there again.
          yield* Effect.forEach(all, (id) => Effect.retry(send(id), { times: 5 }), { concurrency: "unbounded" })
        })
      )
      assert.deepStrictEqual(await stored(two.http, queue), [1 + 3 + 7, 0])
    }
  )

  test("for the answers to others takes its time-out and no more; what was not written is told as not sent", async () => {
    const queue = queueName("waves")
    await on(options, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        tcp.blackhole(true)
        const from = now()
        const ends = yield* Effect.forEach(
          [1, 2, 3, 4, 5, 6, 7],
          (id) =>
            Effect.map(Effect.flip(broker.publish([outgoing(queue, `${id}`)])), (error) => {
              assert.isBelow(now() - from, 2 * publishTimeout)
              return BrokerError.isDoubtful(error) ? "doubtful" : error.reason
            }),
          { concurrency: "unbounded" }
        )
        tcp.blackhole(false)
        assert.deepStrictEqual(ends, [
          ...Array<string>(3).fill("doubtful"),
          ...Array<string>(4).fill("ConnectionFailed")
        ])
      })
    )
  })
})

describe("publishTo: 2 with one of two nsqd away", () => {
  test("stores no message twice on the other one, and says on how many nsqd it could be", async () => {
    const queue = queueName("half")
    const [, other] = two.wires
    // The pauses between attempts to connect are short beside the time of a publish that waits for one.
    const pauses = { reconnectFirst: 20, reconnectMax: 100 }
    await on({ ...two.wired, ...pauses, publishTo: 2, publishTimeout }, (broker) =>
      Effect.gen(function* () {
        const counts = Effect.promise(() => stored(two.http, queue))
        yield* broker.publish([outgoing(queue, "a")])
        assert.deepStrictEqual(yield* counts, [1, 1])
        other!.refuse(true)
        other!.cut()
        // Its loss is not noticed yet.
        const doubtful = yield* Effect.flip(broker.publish([outgoing(queue, "b")]))
        assert.strictEqual(doubtful.reason, "ConnectionLost")
        assert.deepStrictEqual(yield* counts, [2, 1])
        const refused = yield* Effect.flip(broker.publish([outgoing(queue, "c")]))
        assert.strictEqual(refused.reason, "ConnectionFailed")
        assert.match(refused.message, /1 of 2 nsqd.*publishTo/s)
        assert.deepStrictEqual(yield* counts, [2, 1])
        other!.refuse(false)
        yield* until("a new connection", () => other!.connections() > 0)
        yield* broker.publish([outgoing(queue, "d")])
        assert.deepStrictEqual(yield* counts, [3, 2])
      })
    )
  })
})

describe("publishTo: 2 with two names of one nsqd", () => {
  test("stores nothing, and the error names both", async () => {
    const queue = queueName("names")
    const { port } = first!
    const nsqd = [`127.0.0.1:${port}`, `localhost:${port}`]
    await on({ nsqd, publishTo: 2, publishTimeout }, (broker) =>
      Effect.gen(function* () {
        const refused = yield* Effect.flip(broker.publish([outgoing(queue, "a")]))
        assert.match(refused.message, /1 of 2 nsqd.*are the same nsqd/s)
        for (const name of nsqd) assert.include(refused.message, name)
        assert.deepStrictEqual(yield* Effect.promise(() => stored(two.http, queue)), [0, 0])
      })
    )
  })
})

describe.each([1024, 4096])("an nsqd with --max-msg-size=%i", async (limit) => {
  const small = await server({ flags: { "max-msg-size": limit } })

  test("takes small messages, and keeps their dead letters with id, headers and origin", async () => {
    const queue = queueName("small")
    await on(small.direct, (broker) =>
      Effect.gen(function* () {
        const { maxBodySize } = broker.capabilities
        assert.isAtLeast(maxBodySize, limit / 2)
        const producer = yield* Producer.make<string>(queue)
        const runs: Array<Run> = []
        yield* consume(queue, runs, { retry: RetryPolicy.make({ maxRetries: 0 }) }, no)
        const id = yield* producer.send("x".repeat(limit / 4), { headers: { tenant: "acme" } })
        const dead = yield* DeadLetters.make(`${queue}.dlq`)
        const letter = yield* found(
          "the dead letter",
          Effect.map(dead.list(), ([first]) => first)
        )
        assert.deepInclude(letter, { id })
        assert.deepInclude(letter.headers, { tenant: "acme" })
        assert.strictEqual(letter.origin?.queue, queue)
        const error = yield* Effect.flip(producer.send("x".repeat(limit)))
        assert.deepInclude(error, { reason: "BodyTooLarge" })
      })
    )
  })
})
