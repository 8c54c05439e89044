/** Settlements on real servers: what nsqd refuses or never answers, names of deliveries, and twins. */
import { proxy } from "@requeue/brokers"
import { Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { type Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import { channels, held } from "../real/raw.ts"
import { server } from "./server.ts"
import { bytes, consume, now, on, outgoing, queueName, until, type Run } from "../world.ts"

const two = await server({ nodes: 2 })
const one = { nsqd: [two.direct.nsqd![0]!] }
const short = await server({ flags: { "msg-timeout": "1s" } })

const letter = (queue: string) => Settlement.DeadLetter("permanent", queue, { name: "E", message: "no" })

/** A subscription whose deliveries are written down. */
const subscribe = (queue: string, credit: number) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const received: Array<Delivery.Delivery> = []
    const subscription = yield* broker.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: (delivery) => void received.push(delivery),
      onReconnect: () => {}
    })
    subscription.credit(credit)
    return {
      ...subscription,
      received,
      settleAll: subscription.settle,
      settle: (delivery: Delivery.Delivery, settlement: Settlement.Settlement) =>
        Effect.map(
          subscription.settle([{ delivery, settlement }]),
          ([failure]) => failure && `${failure.fate} ${failure.error.reason}`
        ),
      next: (count: number) => until(`delivery ${count}`, () => received.length >= count)
    }
  })

const sum = async (http: ReadonlyArray<string>, queue: string, of: "ready" | "inFlight") =>
  (await channels(http, queue)).reduce((total, each) => total + each[of], 0)

describe("200 messages of one id and one time, sent at once", () => {
  test.each([1, 2] as const)("all run, of %i nsqd", async (publishTo) => {
    const queue = queueName("same-id")
    const message = (index: number): Outgoing.Outgoing => ({
      ...outgoing(queue, "the same", { now: 1_700_000_000_000 }),
      body: bytes(JSON.stringify(`m${index}`))
    })
    const bodies: Array<string> = []
    await on({ ...two.direct, publishTo }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish(Array.from({ length: 200 }, (_, index) => message(index)))
        yield* consume(queue, [], { concurrency: 4 }, ({ body }) => void bodies.push(body))
        // A message on its way to a client is in no count.
        yield* until("each to run", () => new Set(bodies).size === 200)
        yield* until("an empty queue", async () => (await held(two.http, queue)) === 0)
      })
    )
    // Twins that come at the same time both run.
    assert.isBelow(bodies.length, publishTo === 1 ? 201 : 400)
  })
})

describe("twins", () => {
  test("are known to a consumer that sends nothing itself, and are given up once", async () => {
    const queue = queueName("twins")
    const runs: Array<Run> = []
    await on({ ...two.direct, publishTo: 2 }, (broker) => broker.publish([outgoing(queue, "a")]))
    await on(two.direct, () =>
      Effect.gen(function* () {
        const { next, received, settle } = yield* subscribe(queue, 1)
        yield* next(1)
        assert.isUndefined(yield* settle(received[0]!, letter(`${queue}.dlq`)))
        // The other one is finished unseen.
        yield* until("its twin's end", async () => (await channels(two.http, queue)).every(isDone))
        assert.lengthOf(received, 1)
        yield* consume(`${queue}.dlq`, runs)
        yield* until("the dead letter", () => runs.length === 1)
      })
    )
  })

  const isDone = ({ inFlight, ready, topic }: { topic: string; ready: number; inFlight: number }) =>
    topic.endsWith(".dlq") || ready + inFlight === 0

  test("have names of their own, and each delivery of one has its name", async () => {
    const queue = queueName("named")
    await on({ ...two.direct, publishTo: 2 }, (broker) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "a")])
        const { identify, next, received, settle } = yield* subscribe(queue, 10)
        yield* next(2)
        const names = received.map((delivery) => identify!(delivery))
        assert.strictEqual(new Set(names).size, 2)
        assert.isUndefined(yield* settle(received[0]!, Settlement.Retry(0)))
        yield* next(3)
        assert.strictEqual(identify!(received[2]!), names[0])
        // A copy is another message.
        assert.isUndefined(yield* settle(received[2]!, Settlement.Release(1)))
        yield* next(4)
        assert.notInclude(names, identify!(received[3]!))
      })
    )
  })
})

test.each(["native", "exact"] as const)("retry: %s tells whether every retry is a copy", async (retry) => {
  await on({ ...one, retry }, () =>
    Effect.gen(function* () {
      const { copiesRetries } = yield* subscribe(queueName(retry), 0)
      assert.strictEqual(copiesRetries, retry === "exact")
    })
  )
})

describe("a copy that stays under way for longer than its lease, and fails", async () => {
  const http = await proxy(two.broker.nodes[0]!.port + 1)
  afterAll(http.close)

  test("leaves the credit whole: nsqd has delivered again, and what follows is delivered", async () => {
    const queue = queueName("stalled")
    const options = { ...one, nsqdHttp: [`127.0.0.1:${http.port}`], messageTimeout: 1000, requestTimeout: 2500 }
    await on(options, (broker) =>
      Effect.gen(function* () {
        // One for each connection, so that neither waits for the other, and nsqd may deliver again.
        const { next, received, settle } = yield* subscribe(queue, 2)
        // nsqd looks after the leases of a new channel when it looks after its delays.
        yield* broker.publish([outgoing(queue, "due", { delay: 1 })])
        yield* next(1)
        assert.isUndefined(yield* settle(received[0]!, Settlement.Ack))
        yield* broker.publish([outgoing(queue, "a")])
        // Nothing answers when it asks for the topic.
        http.blackhole(true)
        let seen = 1
        for (let stalled = 0; stalled < 3; seen++) {
          yield* next(seen + 1)
          const from = now()
          assert.strictEqual(yield* settle(received[seen]!, letter(`${queue}-other.dlq`)), "lost LeaseLost")
          // One that waited meanwhile is lost already, and makes no copy.
          if (now() - from >= options.messageTimeout) stalled++
        }
        http.blackhole(false)
        yield* Effect.forEach(["b", "c", "d"], (id) => broker.publish([outgoing(queue, id)]))
        const ended = new Set<string>()
        let isReleased = false
        yield* until("the end of all", async () => {
          for (const delivery of received.splice(0)) {
            // Its copy comes on the connection of the retry topic, which has the same credit.
            const isFirst = delivery.metadata.id === "b" && !isReleased
            const settlement = isFirst ? Settlement.Release(1) : Settlement.Ack
            const error = await Effect.runPromise(settle(delivery, settlement))
            isReleased ||= isFirst && error === undefined
            if (error === undefined && !isFirst) ended.add(delivery.metadata.id)
          }
          return ended.size === 4 && isReleased
        })
      })
    )
  })
})

test("FIN after the end of the lease, which nsqd refuses, is not told as success", async () => {
  const queue = queueName("late")
  await on(short.direct, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "a")])
      const { credit, next, received, settle } = yield* subscribe(queue, 1)
      yield* next(1)
      const [delivery] = received
      // Nobody gets it when nsqd takes it back.
      credit(0)
      yield* until("nsqd to take it back", async () => (await sum(short.http, queue, "ready")) === 1)
      assert.strictEqual(yield* settle(delivery!, Settlement.Ack), "lost LeaseLost")
      assert.strictEqual(yield* Effect.promise(() => sum(short.http, queue, "ready")), 1)
    })
  )
})
