import { assert, test } from "vitest"
import * as Call from "../src/sqs/strict/Call.ts"
import * as Leases from "../src/sqs/strict/leases.ts"
import * as Messages from "../src/sqs/strict/messages.ts"
import { perMessage } from "../src/sqs/strict/perMessage.ts"
import type { Reply, Ask } from "../src/sqs/strict/upstream.ts"

const handles = ["h1", "h2"]

/** Takes one delete of each message, as ElasticMQ does, and answers what is well later than what is not. */
const server = () => {
  const gone = new Set<string>()
  const ask: Ask = async (_, body) => {
    const Successful: Array<object> = []
    const Failed: Array<object> = []
    for (const { Id, ReceiptHandle = "" } of Call.entriesOf(Call.make("DeleteMessageBatch", body))) {
      if (gone.has(ReceiptHandle)) Failed.push({ Id, Code: "ReceiptHandleIsInvalid", SenderFault: true })
      else Successful.push({ Id })
      gone.add(ReceiptHandle)
    }
    if (Failed.length === 0) for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
    return { status: 200, headers: {}, body: { Successful, Failed } }
  }
  return ask
}

test("a delete that is asked for again before it was answered is done, as on AWS", async () => {
  const leases = Leases.make(Date.now)
  for (const handle of handles) leases.give(handle, "q", 30)
  const call = Call.make("DeleteMessageBatch", {
    QueueUrl: "http://127.0.0.1:1/000000000000/q",
    Entries: handles.map((ReceiptHandle, index) => ({ Id: String(index), ReceiptHandle }))
  })
  const ask = server()
  const once = () =>
    perMessage(call, ask, { leases, messages: Messages.make(), queue: {} }, () => undefined) as Promise<Reply>
  const all = { Successful: [{ Id: "0" }, { Id: "1" }] }
  assert.deepStrictEqual(
    (await Promise.all([once(), once(), once()])).map(({ body }) => body),
    [all, all, all]
  )
})
