/** What is published in one turn of the event loop leaves in one command: each message has its own outcome all the same. */
import { BrokerError } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { wire } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterAll, assert, describe, test } from "vitest"
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { drainIds, stored } from "../real/raw.ts"
import { server } from "./server.ts"
import { readCommand } from "../real/traffic.ts"
import { bytes, on, outgoing, queueName } from "../world.ts"

const limits = { "max-msg-size": 4096, "max-body-size": 16_384 }
const small = await server({ flags: limits })
const [traced] = small.wires
/** Its limits are not known: it is not asked for them. */
const unasked: NsqOptions.Options = { nsqd: small.wired.nsqd!, http: false }

/** A message whose body has so many bytes, and its id at the end. */
const sized = (queue: string, id: string, size: number) => ({
  ...outgoing(queue, id),
  body: bytes(`"${id}"`.padStart(size, " "))
})

const first = "f0"

/** Publishes each by itself, all in one turn, to topics that are there. Answers what became of each. */
const publishEach = async (options: NsqOptions.Options, messages: ReadonlyArray<ReturnType<typeof sized>>) => {
  const firsts = [...new Set(messages.map(({ queue }) => queue))].map((queue) => sized(queue, first, 8))
  await on(small.direct, (broker) => broker.publish(firsts))
  return on(options, (broker) =>
    Effect.gen(function* () {
      // It makes the topics once.
      yield* Effect.forEach(firsts, (message) => broker.publish([message]))
      const results = yield* Effect.forEach(messages, (message) => Effect.result(broker.publish([message])), {
        concurrency: "unbounded"
      })
      return results.map((result) => (Result.isSuccess(result) ? "sent" : result.failure.reason))
    })
  )
}

/** The ids that are stored, but for the first. */
const idsIn = async (queue: string) => (await drainIds(small.http, queue, "work")).filter((id) => id !== first)

/** How many are stored, but for the first. */
const countIn = async (queue: string) => (await stored(small.http, queue))[0]! - 2

const many = (queue: string, count: number, size: number) =>
  Array.from({ length: count }, (_, index) => sized(queue, `m${index}`, size))

/** The commands that published them, but for the first. */
const of = (queue: string) =>
  traced
    .sent("PUB", "MPUB", "DPUB")
    .filter(({ args }) => args[0] === queue)
    .slice(1)

const idsOf = (messages: ReadonlyArray<{ readonly metadata: { readonly id: string } }>) =>
  messages.map(({ metadata }) => metadata.id)

describe("messages that are published in one turn", () => {
  test("leave in one command, and are stored in their order", async () => {
    const queue = queueName("turn")
    const messages = many(queue, 10, 8)
    assert.deepStrictEqual(await publishEach(small.wired, messages), Array<string>(10).fill("sent"))
    assert.deepStrictEqual(
      of(queue).map(({ body, name }) => [name, body!.readUInt32BE(0)]),
      [["MPUB", 10]]
    )
    assert.deepStrictEqual(await idsIn(queue), idsOf(messages))
  })

  test.each([0, 1])("fill a command to the last byte of --max-body-size, and %i more", async (more) => {
    const queue = queueName("full")
    const around = (await envelope()) + 4
    const size = 2048 - around
    // Seven of 2,048 bytes with their sizes, and one that fills the rest but the count.
    const messages = [...many(queue, 7, size), sized(queue, "mL", 2048 - around - 4 + more)]
    assert.deepStrictEqual(await publishEach(small.wired, messages), Array<string>(8).fill("sent"))
    const bodies = of(queue).map(({ body, name }) => [name, body!.length])
    assert.deepStrictEqual(
      bodies,
      more === 0
        ? [["MPUB", 16_384]]
        : [
            ["MPUB", 4 + 7 * 2048],
            ["PUB", 2048 - 4 - 4 + 1]
          ]
    )
    assert.strictEqual(await countIn(queue), 8)
  })

  test("wait for room among maxUnconfirmed, whose answers may be outstanding", async () => {
    const queue = queueName("room")
    const sent = await publishEach({ ...small.wired, maxUnconfirmed: 3 }, many(queue, 10, 8))
    assert.deepStrictEqual(sent, Array<string>(10).fill("sent"))
    for (const { body, name } of of(queue)) if (name === "MPUB") assert.isAtMost(body!.readUInt32BE(0), 3)
    assert.strictEqual(await countIn(queue), 10)
  })

  test("with a delay, or to another queue, keep their own commands and outcomes", async () => {
    const [a, b] = [queueName("a"), queueName("b")]
    const messages = [sized(a, "a1", 8), sized(b, "b1", 8), { ...sized(a, "a2", 8), delay: 100 }, sized(a, "a3", 8)]
    assert.deepStrictEqual(await publishEach(small.wired, messages), Array<string>(4).fill("sent"))
    assert.deepStrictEqual((await idsIn(a)).toSorted(), ["a1", "a2", "a3"])
    assert.deepStrictEqual(await idsIn(b), ["b1"])
  })
})

/** Bytes of the envelope of a message with an id of two characters. */
const envelope = async (): Promise<number> => {
  const queue = queueName("envelope")
  await publishEach(small.wired, [sized(queue, "m0", 8)])
  return of(queue)[0]!.body!.length - 8
}

describe("of messages that are published in one turn to an nsqd whose limits are not known", () => {
  test("one of a batch that is too large is refused, and no neighbour", async () => {
    const queue = queueName("batch")
    const messages = [sized(queue, "m0", 8), sized(queue, "m1", 5000), sized(queue, "m2", 8)]
    await publishEach(unasked, [sized(queue, first, 8)])
    await on(unasked, (broker) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(broker.publish(messages))
        assert.deepStrictEqual(
          error.entries?.map(({ status }) => status),
          ["sent", "failed", "sent"]
        )
      })
    )
    assert.deepStrictEqual((await idsIn(queue)).toSorted(), ["m0", "m2"])
  })

  test("none is refused because all together are too large", async () => {
    const queue = queueName("together")
    const messages = many(queue, 20, 2000)
    assert.deepStrictEqual(await publishEach(unasked, messages), Array<string>(20).fill("sent"))
    assert.strictEqual(await countIn(queue), 20)
  })
})

const isDoubtful = (error: unknown) => error instanceof BrokerError.BrokerError && BrokerError.isDoubtful(error)

describe("a command of many messages that is lost", async () => {
  const tcp = await wire(small.broker.nodes[0]!.port, () => (input) => {
    const read = readCommand(input)
    return read && { size: read.size, name: read.part?.name ?? "", about: "" }
  })
  afterAll(() => tcp.close())
  const options = { nsqd: [`127.0.0.1:${tcp.port}`], nsqdHttp: [...small.http] }

  test.each([
    ["command", 1],
    ["answer", 2]
  ] as const)("with its %s is written again: each message is stored, %i times", async (part, times) => {
    const queue = queueName("lost")
    const outcomes = await on(options, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "first")])
        const lost = tcp.loseNext(({ name }) => name === "MPUB", part)
        const all = yield* Effect.forEach(many(queue, 10, 8), (message) => Effect.result(broker.publish([message])), {
          concurrency: "unbounded"
        })
        assert.isTrue(lost.happened())
        lost.end()
        return all.map(Result.isSuccess)
      })
    )
    assert.deepStrictEqual(outcomes, Array<boolean>(10).fill(true))
    assert.deepStrictEqual(await stored(small.http, queue), [1 + 10 * times])
  })

  test.each([
    ["command", 1],
    ["answer", 2]
  ] as const)("with its %s is written again also where no fiber sends it, %i times stored", async (part, times) => {
    const queue = queueName("face")
    await using requeue = await connect(NsqBroker.layer(options), { logLevel: "None" })
    await requeue.send(queue, "first")
    const lost = tcp.loseNext(({ name }) => name === "MPUB", part)
    const sends = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => requeue.send(queue, index)))
    assert.isTrue(lost.happened())
    lost.end()
    assert.deepStrictEqual(new Set(sends.map(({ status }) => status)), new Set(["fulfilled"]))
    assert.deepStrictEqual(await stored(small.http, queue), [1 + 10 * times])
  })

  test("with its connection, while no other can be made, leaves each message in doubt where no fiber sends it", async () => {
    const queue = queueName("doubtful")
    await using requeue = await connect(NsqBroker.layer({ ...options, publishTimeout: 1000 }), { logLevel: "None" })
    await requeue.send(queue, "first")
    const lost = tcp.loseNext(({ name }) => name === "MPUB", "answer")
    tcp.refuse(true)
    const sends = Array.from({ length: 5 }, (_, index) => requeue.send(queue, index).then(() => undefined, isDoubtful))
    assert.deepStrictEqual(await Promise.all(sends), Array<boolean>(5).fill(true))
    tcp.refuse(false)
    lost.end()
    assert.deepStrictEqual(await stored(small.http, queue), [6])
  })

  test("with its connection, while no other can be made, leaves each message in doubt", async () => {
    const queue = queueName("doubt")
    await on({ ...options, publishTimeout: 1000 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "first")])
        const lost = tcp.loseNext(({ name }) => name === "MPUB", "answer")
        tcp.refuse(true)
        const errors = yield* Effect.forEach(many(queue, 5, 8), (message) => Effect.flip(broker.publish([message])), {
          concurrency: "unbounded"
        })
        tcp.refuse(false)
        lost.end()
        assert.deepStrictEqual(errors.map(BrokerError.isDoubtful), Array<boolean>(5).fill(true))
      })
    )
    assert.deepStrictEqual(await stored(small.http, queue), [6])
  })
})
