/** The end of a program whose nsqd has fallen silent. */
import { proxy } from "@requeue/brokers"
import { BrokerError } from "@requeue/core"
import { connect, type Requeue } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { afterAll, assert, expect, test } from "vitest"
import { server } from "./server.ts"
import { now, on, outgoing, queueName, until } from "../world.ts"

const one = await server()
const tcp = await proxy(one.broker.nodes[0]!.port)
afterAll(() => tcp.close())

const options = { url: `nsq://127.0.0.1:${tcp.port}`, nsqdHttp: [one.http[0]] }

/** How long `close("1 second")` takes while nothing is answered, in milliseconds. */
const closing = async (requeue: Requeue): Promise<number> => {
  tcp.blackhole(true)
  const from = now()
  await requeue.close("1 second")
  const took = now() - from
  tcp.blackhole(false)
  return took
}

test("close takes a second for connections, however many there are", async () => {
  const requeue = await connect(options, { logLevel: "None" })
  for (const name of ["a", "b", "c"]) await requeue.consume(queueName(name), {}, () => {})
  assert.isBelow(await closing(requeue), 3000)
})

test("close gives up a copy that has no answer, and its message comes again", async () => {
  const queue = queueName("copied")
  const requeue = await connect({ ...options, retry: "exact", messageTimeout: 2000 }, { logLevel: "None" })
  let copies = 0
  const { promise: failing, reject: fail } = Promise.withResolvers<never>()
  await requeue.consume(queue, { onEvent: ({ _tag }) => void (copies += Number(_tag === "AttemptFailed")) }, () => {
    copies--
    return failing
  })
  await requeue.send(queue, "a")
  await expect.poll(() => copies, { timeout: 10_000 }).toBe(-1)
  const closed = closing(requeue)
  fail(new Error("no"))
  // A second for the handler, one for its settlement, and one for the connections.
  assert.isBelow(await closed, 6000)
  await using again = await connect({ ...options, messageTimeout: 2000 }, { logLevel: "None" })
  const bodies: Array<unknown> = []
  await again.consume(queue, {}, ({ body }) => void bodies.push(body))
  await expect.poll(() => bodies, { timeout: 20_000 }).toContain("a")
})

test("close tells of a send that has no answer, and of one that was not written; only the first may be stored", async () => {
  const queue = queueName("unanswered")
  const requeue = await connect({ ...options, maxUnconfirmed: 1 }, { logLevel: "None" })
  await requeue.send(queue, "first")
  tcp.blackhole(true)
  const sends = ["a", "b"].map((body) => requeue.send(queue, body).then(() => undefined, reasonOf))
  assert.isBelow(await closing(requeue), 3000)
  assert.deepStrictEqual(await Promise.all(sends), ["ConnectionLost", "ConnectionFailed"])
})

const reasonOf = (error: unknown) => (error instanceof BrokerError.BrokerError ? error.reason : error)

test("what waits for a connection fails as soon as the broker is closed", async () => {
  const { sent } = await on({ ...options, publishTimeout: 60_000 }, (broker) =>
    Effect.gen(function* () {
      tcp.refuse(true)
      tcp.cut()
      yield* until("the loss", () => broker.connection().state === "down")
      return { sent: Effect.runPromise(Effect.flip(broker.publish([outgoing(queueName("unsent"), "a")]))) }
    })
  ).finally(() => tcp.refuse(false))
  assert.deepInclude(await sent, { reason: "ConnectionFailed", detail: "the broker was closed" })
}, 30_000)
