/** Sends of one producer that go to the server in different ways: from a template, and as the driver writes them. */
import { BrokerError, Codec, QueueDefinition } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { connect as dial } from "amqplib"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { RabbitMqBroker, RabbitMqNative } from "../../src/index.ts"
import { apart, shared } from "../real/server.ts"
import { queueName, until } from "../world.ts"

const one = await shared()

/** Bytes that are all the same. */
const summary = (bytes: Uint8Array): string => `${bytes.length} of ${[...new Set(bytes)].join()}`

/** The messages of a queue, as another client gets them. */
const taken = async (queue: string) => {
  const model = await dial(one.url)
  const channel = await model.createChannel()
  const found: Array<readonly [id: unknown, note: unknown, body: string]> = []
  for (let message = await channel.get(queue, { noAck: true }); message !== false; ) {
    const { content, properties } = message
    found.push([properties.messageId, properties.headers?.["note"], summary(content)])
    message = await channel.get(queue, { noAck: true })
  }
  await model.close()
  return found
}

const bytesOf = (name: string) => QueueDefinition.make(name, { codec: Codec.bytes })

test("come in their order and whole, though their bodies are changed as soon as they are sent", async () => {
  await using requeue = await connect(RabbitMqBroker.layer({ url: one.url }))
  const [queue, other] = [queueName("ways"), queueName("other")]
  const body = new Uint8Array(200_000)
  const sent: Array<Promise<string>> = []
  const expected: Array<readonly [id: unknown, note: unknown, body: string]> = []
  for (let n = 0; n < 500; n++) {
    const id = n % 3 === 0 ? `id ${n} é"` : `id ${n}`
    const size = n % 50 === 7 ? 200_000 : n % 10 === 3 ? 0 : n
    const note = n % 7 === 2 ? `note "${n}" ü` : undefined
    body.fill(n & 255)
    const native = n % 11 === 5 ? RabbitMqNative.make({ type: "typed", headers: { at: n } }) : undefined
    expected.push([id, note, summary(body.subarray(0, size))])
    sent.push(
      requeue.send(bytesOf(queue), body.subarray(0, size), {
        id,
        ...(note === undefined ? {} : { headers: { note } }),
        ...(native === undefined ? {} : { native })
      })
    )
    if (n % 5 === 0) sent.push(requeue.send(bytesOf(other), body.subarray(0, 5)))
    body.fill(255)
    if (n % 100 === 99) await Promise.resolve()
  }
  await Promise.all(sent)
  assert.deepStrictEqual(await taken(queue), expected)
  assert.strictEqual((await taken(other)).length, 100)
})

test("end when the connection is closed, and those without an answer say that they may be stored", async () => {
  const program = Effect.gen(function* () {
    const { proxied, proxy } = yield* apart(one)
    yield* Effect.promise(async () => {
      const requeue = await connect(RabbitMqBroker.layer({ url: proxied }))
      const queue = queueName("closes")
      await requeue.send(queue, 0)
      proxy.blackhole(true)
      const outcomes = Promise.allSettled(Array.from({ length: 50 }, (_, n) => requeue.send(queue, n)))
      await requeue.close("100 millis")
      const reasons = (await outcomes).map((each) =>
        each.status === "rejected" && each.reason instanceof BrokerError.BrokerError ? each.reason.reason : each.status
      )
      assert.deepStrictEqual(new Set(reasons), new Set(["ConnectionLost"]))
    })
  })
  await Effect.runPromise(Effect.scoped(program))
})

test("name the option that has limited a wait for an answer, or for a connection", async () => {
  const program = Effect.gen(function* () {
    const { proxied, proxy } = yield* apart(one)
    yield* Effect.promise(async () => {
      await using requeue = await connect(RabbitMqBroker.layer({ url: proxied, publishTimeout: 300 }))
      const queue = queueName("names")
      await requeue.send(queue, 0)
      const failure = () => requeue.send(queue, 1).then(String, String)
      proxy.blackhole(true)
      assert.match(await failure(), /: Timeout: no answer within 300ms; .* or raise publishTimeout$/)
      proxy.cut()
      assert.match(await failure(), /: ConnectionFailed: no \w+ within 300ms\. .*Or raise publishTimeout$/)
      proxy.blackhole(false)
    })
  })
  await Effect.runPromise(Effect.scoped(program))
})

test("fail where their queue is gone, and are taken when it is there again", async () => {
  await using requeue = await connect(RabbitMqBroker.layer({ url: one.url, assert: "passive" }))
  const queue = queueName("nowhere")
  const model = await dial(one.url)
  const channel = await model.createChannel()
  await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } })
  await requeue.send(queue, 1)
  await channel.deleteQueue(queue)
  const outcomes = await Promise.allSettled([requeue.send(queue, 2), requeue.send(queue, 3)])
  for (const outcome of outcomes)
    assert.isTrue(outcome.status === "rejected" && outcome.reason instanceof BrokerError.BrokerError)
  await Effect.runPromise(
    until("the queue again", async () => {
      await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } })
      return requeue.send(queue, 4).then(
        () => true,
        () => false
      )
    })
  )
  assert.isAbove((await taken(queue)).length, 0)
  await channel.deleteQueue(queue)
  await model.close()
})
