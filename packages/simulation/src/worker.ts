/** Runs chunks in a thread. */
import { parentPort } from "node:worker_threads"
import * as Chunk from "./Chunk.ts"

const port = parentPort!

// No law reads stack traces, and each world makes hundreds of errors.
Error.stackTraceLimit = 0

port.on("message", (task: Chunk.Task) => {
  void Chunk.run(task).then((result) => port.postMessage(result))
})
