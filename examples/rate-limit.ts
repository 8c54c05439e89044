// At most 2 handler runs in 200 milliseconds. Run: node examples/rate-limit.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect("memory:")
const ended = Promise.withResolvers<void>()
const starts: Array<number> = []

await requeue.consume("calls", { concurrency: 10, rateLimit: { max: 2, per: "200 millis" } }, () => {
  if (starts.push(performance.now()) === 5) ended.resolve()
})
await requeue.sendBatch(
  "calls",
  [1, 2, 3, 4, 5].map((body) => ({ body }))
)
await ended.promise
console.log("third run 200 ms after the first:", starts[2]! - starts[0]! >= 200)
console.log("fifth run 200 ms after the third:", starts[4]! - starts[2]! >= 200)
await requeue.close()

// prints:
// third run 200 ms after the first: true
// fifth run 200 ms after the third: true
