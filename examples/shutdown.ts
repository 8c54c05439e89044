// SIGTERM: running handlers finish, unfinished messages go back. Run: node examples/shutdown.ts
import { connect } from "@requeue/core/promise"

const requeue = await connect("memory:")
const started = Promise.withResolvers<void>()

await requeue.consume<number>("orders", { drainTimeout: "20 seconds" }, async (message) => {
  started.resolve()
  await new Promise((resolve) => setTimeout(resolve, 100)) // work
  console.log(`order ${message.body} handled`)
})
process.once("SIGTERM", () => {
  void requeue.close().then(() => console.log("closed"))
})

await requeue.send("orders", 1)
await started.promise
process.kill(process.pid, "SIGTERM") // what your platform does

// prints:
// order 1 handled
// closed
