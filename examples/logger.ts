// Your own logger: pino, winston, console, or any object with these methods. Run: node examples/logger.ts
import { connect } from "@requeue/core/promise"

const write = (level: string) => (message: string, fields: { queue?: string; errorName?: string }) =>
  console.log(level, message, fields.queue, fields.errorName)
const logger = { debug: () => {}, info: () => {}, warn: write("warn"), error: write("error") }

const requeue = await connect("memory:", { logger })
const ended = Promise.withResolvers<void>()
await requeue.consume(
  "orders",
  { retry: { maxRetries: 1 }, onEvent: ({ _tag }) => _tag === "Succeeded" && ended.resolve() },
  ({ attempts }) => {
    if (attempts === 1) throw new TypeError("total is not a number")
  }
)
await requeue.send("orders", {})
await ended.promise
await requeue.close()

// prints:
// warn a handler failed orders TypeError
