/** Sends a burst without a consumer, as while a connection opens, and then handles it. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { bytes, connect, queue } from "@requeue/core/promise"

const messages = 60_000

await using requeue = await connect(MemoryBroker.layer())
const work = queue("work", { codec: bytes })
const body = new Uint8Array(256)

await Promise.all(Array.from({ length: messages }, () => requeue.send(work, body)))

const { promise: handled, resolve } = Promise.withResolvers<void>()
let left = messages
await requeue.consume(work, { concurrency: 99 }, async () => {
  await new Promise((done) => setImmediate(done))
  // What a handler sends is young as well.
  if (left % 2 === 0) await requeue.send(queue("other", { codec: bytes }), body)
  if (--left === 0) resolve()
})
await handled
