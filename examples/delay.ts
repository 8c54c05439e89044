// Messages that are delivered later. Run: node examples/delay.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect("memory:")
const ended = Promise.withResolvers<void>()

await requeue.consume<string>("reminders", {}, (message) => {
  console.log(message.body)
  if (message.body === "third") ended.resolve()
})
await requeue.send("reminders", "third", { delay: "200 millis" })
await requeue.send("reminders", "second", { delay: "100 millis" })
await requeue.send("reminders", "first")
await ended.promise
await requeue.close()

// prints:
// first
// second
// third
