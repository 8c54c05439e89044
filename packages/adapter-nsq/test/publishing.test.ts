/** Publishing on real servers that answer late, not at all, or are away. */
import { proxy, wire } from "@requeue/brokers"
import { DeadLetters, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import { held } from "./raw.ts"
import { server } from "./server.ts"
import { readCommand } from "./traffic.ts"
import { consume, found, no, now, on, outgoing, queueName, type Run } from "./world.ts"

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
        assert.strictEqual(yield* Effect.promise(() => held(two.http, queue)), 0)
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
        assert.strictEqual(yield* Effect.promise(() => held(two.http, queue)), 2)
      })
    )
  })
})

describe("publishTo: 2 with one of two nsqd away", () => {
  test("stores no message twice on the other one, and says on how many nsqd it could be", async () => {
    const queue = queueName("half")
    const [, other] = two.wires
    await on({ ...two.wired, publishTo: 2, publishTimeout }, (broker) =>
      Effect.gen(function* () {
        const stored = () => Effect.promise(() => Promise.all(two.http.map((http) => held([http], queue))))
        yield* broker.publish([outgoing(queue, "a")])
        assert.deepStrictEqual(yield* stored(), [1, 1])
        other!.refuse(true)
        other!.cut()
        // Its loss is not noticed yet.
        const doubtful = yield* Effect.flip(broker.publish([outgoing(queue, "b")]))
        assert.strictEqual(doubtful.reason, "ConnectionLost")
        assert.deepStrictEqual(yield* stored(), [2, 1])
        const refused = yield* Effect.flip(broker.publish([outgoing(queue, "c")]))
        assert.strictEqual(refused.reason, "ConnectionFailed")
        assert.match(refused.message, /1 of 2 nsqd.*publishTo/s)
        assert.deepStrictEqual(yield* stored(), [2, 1])
        other!.refuse(false)
        yield* broker.publish([outgoing(queue, "d")])
        assert.deepStrictEqual(yield* stored(), [3, 2])
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
