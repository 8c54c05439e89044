// A schema validates and types bodies. Run: node examples/schema.ts
import { connect, queue } from "@requeue/core/promise"
import * as z from "zod"

const orders = queue("orders", { schema: z.object({ id: z.string(), total: z.number() }) })
const requeue = await connect("memory:", { logger: false })
const ended = Promise.withResolvers<void>()

await requeue.consume(orders, { onEvent: ({ _tag }) => _tag === "DeadLettered" && ended.resolve() }, ({ body }) => {
  console.log(`${body.id}: ${body.total.toFixed(2)}`)
})
await requeue.send(orders, { id: "o1", total: 9.5 })
await requeue.send(orders, { id: "o2", total: "9.5" as never }).catch(() => console.log("not sent: invalid"))
await requeue.send("orders", { id: "o3" }) // without the definition, as another program may send it
await ended.promise
console.log("o3 is a dead letter")
await requeue.close()

// prints:
// o1: 9.50
// not sent: invalid
// o3 is a dead letter
