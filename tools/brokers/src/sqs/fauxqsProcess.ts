/** Runs fauxqs on a port of 127.0.0.1, with a clock that can be moved: `fauxqsProcess <port>`. */
import { buildApp } from "fauxqs"
import { region } from "./address.ts"
import * as Fifo from "./fauxqsFifo.ts"
import { isValidText } from "./text.ts"

let ahead = 0
const now = Date.now
// fauxqs takes all its times from Date.now, and reads it every 20 ms while a client polls.
Date.now = () => now() + ahead

const partOf = (path: string) => import(new URL(path, import.meta.resolve("fauxqs")).href)

// fauxqs checks the halves of a surrogate pair one by one, and so rejects every emoji.
const types: { readonly INVALID_MESSAGE_BODY_CHAR: RegExp } = await partOf("sqs/sqsTypes.js")
types.INVALID_MESSAGE_BODY_CHAR.test = (text) => !isValidText(text)

interface Queue {
  readonly processTimers: () => void
  getAllAttributes: (this: Queue, names: ReadonlyArray<string>) => unknown
}
const store: { readonly SqsQueue: { readonly prototype: Queue & Parameters<typeof Fifo.change>[0] } } =
  await partOf("sqs/sqsStore.js")
const queue = store.SqsQueue.prototype
Fifo.change(queue)

// fauxqs reads its clock only for receives, so a message whose visibility is over would stay in flight forever.
const { getAllAttributes } = queue
queue.getAllAttributes = function (names) {
  this.processTimers()
  return getAllAttributes.call(this, names)
}

const app = buildApp({ logger: false, defaultRegion: region })
app.post<{ Params: { readonly milliseconds: string } }>("/_clock/:milliseconds", (request, reply) => {
  ahead += Number(request.params.milliseconds)
  void reply.send(`${ahead} ms ahead`)
})
process.once("SIGTERM", () => void app.close().then(() => process.exit()))
await app.listen({ port: Number(process.argv[2]), host: "127.0.0.1" })
