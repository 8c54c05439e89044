/** Calls tell whether SQS can be reached. */
import { Connection } from "@requeue/core/port"
import { assert, test } from "vitest"
import type { Client } from "../src/internal/client.ts"
import { reporting } from "../src/internal/reporting.ts"

test("SQS is down because of the last call that it did not answer, until it answers one, even with a refusal", async () => {
  let time = 0
  const reach = Connection.track("up", () => ++time)
  const failing = async (cause: Error) => {
    const client: Pick<Client, "getQueueUrl"> = { getQueueUrl: () => Promise.reject(cause) }
    const { getQueueUrl } = reporting(client as Client, reach) // The call that is made.
    await getQueueUrl({ QueueName: "q" }).catch(() => {})
    return reach.current()
  }
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9324"), { code: "ECONNREFUSED" })
  const down = await failing(refused)
  assert.deepInclude(down, { state: "down", since: 2 })
  assert.include(down.because, "ConnectionFailed: ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:9324")
  const other = await failing(Object.assign(new Error("getaddrinfo ENOTFOUND sqs"), { code: "ENOTFOUND" }))
  assert.strictEqual(other.since, 2)
  assert.include(other.because, "getaddrinfo ENOTFOUND sqs")
  const answered = await failing(Object.assign(new Error("no such queue"), { $metadata: { httpStatusCode: 400 } }))
  assert.deepStrictEqual(answered, { state: "up", since: 3 })
})
