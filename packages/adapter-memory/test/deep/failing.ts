/** Prints how many megabytes of errors are left, of 100 with 0.1 MB each, when their messages are settled and young objects collected. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { connect, constant, queue } from "@requeue/core/promise"

const { gc } = globalThis
if (gc === undefined) throw new Error("failing: it needs --expose-gc")

const messages = 100

await using requeue = await connect(MemoryBroker.layer())
const work = queue("work")

let left = 0
let end = (): void => {}
await requeue.consume(work, { retry: { maxRetries: 1, backoff: constant("1 millis") } }, ({ attempts }) => {
  if (attempts === 2 && --left === 0) setImmediate(end)
  throw Object.assign(new Error("503 Service Unavailable"), { ballast: Array.from({ length: 12_500 }, () => attempts) })
})

const round = async (): Promise<void> => {
  left = messages
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  end = resolve
  for (let nth = 0; nth < messages; nth++) await requeue.send(work, { nth })
  await ended
}

await round()
gc()
const before = process.memoryUsage().heapUsed
await round()
for (let nth = 0; nth < 3; nth++) gc({ type: "minor" })
console.log((process.memoryUsage().heapUsed - before) / 1e6)
