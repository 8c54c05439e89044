/** Runs fauxqs on a port of 127.0.0.1, with a clock that can be moved: `fauxqsProcess <port>`. */
import { buildApp } from "fauxqs"
import { region } from "./address.ts"
import { isValidText } from "./text.ts"

let ahead = 0
const now = Date.now
// All that fauxqs does at a time of day it decides by Date.now, and it looks again every 20 ms while somebody polls.
Date.now = () => now() + ahead

// It looks for what AWS refuses one half of a surrogate pair at a time, and so refuses every emoji.
const types = (await import(new URL("sqs/sqsTypes.js", import.meta.resolve("fauxqs")).href)) as {
  readonly INVALID_MESSAGE_BODY_CHAR: RegExp
}
types.INVALID_MESSAGE_BODY_CHAR.test = (text) => !isValidText(text)

const app = buildApp({ logger: false, defaultRegion: region })
app.post("/_clock/:milliseconds", (request, reply) => {
  ahead += Number((request.params as { milliseconds: string }).milliseconds)
  void reply.send(`${ahead} ms ahead`)
})
process.once("SIGTERM", () => void app.close().then(() => process.exit()))
await app.listen({ port: Number(process.argv[2]), host: "127.0.0.1" })
