// Inspect, fix and redrive dead letters. Run: node examples/dead-letters.ts
import { connect } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"

const requeue = await connect("memory:", { logger: false })
const dead = deadLetters(requeue, "orders.dlq")
let isFixed = false
let ended = Promise.withResolvers<void>()

await requeue.consume<{ id: number }>(
  "orders",
  {
    retry: { maxRetries: 0 },
    onEvent: ({ _tag }) => {
      if (_tag === "DeadLettered" || _tag === "Succeeded") ended.resolve()
    }
  },
  ({ body }) => {
    if (!isFixed) throw new TypeError("total is not a number")
    console.log(`order ${body.id} handled`)
  }
)
await requeue.send("orders", { id: 7 })
await ended.promise

const [letter] = await dead.list({ limit: 10 })
console.log(`dead: ${new TextDecoder().decode(letter?.body)}, ${letter?.origin?.error?.name}`)

isFixed = true
ended = Promise.withResolvers<void>()
await dead.redrive()
await ended.promise
console.log("dead letters left:", await dead.count())
await requeue.close()

// prints:
// dead: {"id":7}, TypeError
// order 7 handled
// dead letters left: 0
