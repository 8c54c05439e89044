import { SQS, type Message, type SQSClientConfig } from "@aws-sdk/client-sqs"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, afterEach, assert, beforeAll, beforeEach, test, vi } from "vitest"
import { proxy, start, strictSqs, type SqsBroker, type StrictSqs } from "../../src/index.ts"
import { parse } from "../../src/sqs/address.ts"
import { until } from "../real/lifecycle.ts"

vi.stubEnv("REQUEUE_SQS_URL", "")

let broker: SqsBroker
let strict: StrictSqs
let sqs: SQS
let QueueUrl: string
let count = 0

const connect = (url: string, config: SQSClientConfig = {}) => {
  const { credentials, endpoint = "", region = "" } = parse(url) ?? {}
  return new SQS({ endpoint, region, maxAttempts: 1, ...(credentials === undefined ? {} : { credentials }), ...config })
}
const create = async (name: string, Attributes: Record<string, string> = {}): Promise<string> => {
  const { QueueUrl: url = "" } = await sqs.createQueue({ QueueName: name, Attributes })
  return url
}

beforeAll(async () => {
  broker = await start("sqs")
  strict = await strictSqs(broker, { inFlight: 12 })
  sqs = connect(strict.url)
})
afterAll(async () => {
  sqs.destroy()
  await strict.close()
  await broker.dispose()
})
beforeEach(async () => {
  QueueUrl = await create(`q${count++}`)
})
afterEach(() => {
  strict.clear()
  strict.deny([])
})

const outcome = async (action: () => Promise<unknown>): Promise<string> =>
  action().then(
    () => "done",
    (cause: { Code?: string; code?: string; name: string }) => cause.code ?? cause.Code ?? cause.name
  )
const sendAll = (...bodies: ReadonlyArray<string>) =>
  sqs.sendMessageBatch({ QueueUrl, Entries: bodies.map((MessageBody, n) => ({ Id: `${n}`, MessageBody })) })
const receive = async (url = QueueUrl, wait = 0): Promise<ReadonlyArray<Message>> => {
  const { Messages = [] } = await sqs.receiveMessage({
    QueueUrl: url,
    WaitTimeSeconds: wait,
    MaxNumberOfMessages: 10,
    MessageSystemAttributeNames: ["All"]
  })
  return Messages
}
const bodies = (messages: ReadonlyArray<Message>) =>
  messages.map(({ Body = "" }) => Body).toSorted((a, b) => a.localeCompare(b))
const calls = (action: string): number => strict.calls()[action] ?? 0
const inFlight = async () => {
  const { Attributes } = await sqs.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
  return Number(Attributes?.ApproximateNumberOfMessagesNotVisible)
}
const deletions = (messages: ReadonlyArray<Message>) =>
  messages.map(({ ReceiptHandle }, n) => ({ Id: `${n}`, ReceiptHandle }))

test("calls pass, are counted, and queue URLs are the proxy's", async () => {
  const before = strict.calls()["SendMessageBatch"] ?? 0
  const { Failed, Successful } = await sendAll("a", "b")
  assert.strictEqual(Successful?.length, 2)
  assert.isUndefined(Failed)
  assert.strictEqual(strict.calls()["SendMessageBatch"], before + 1)
  assert.strictEqual(new URL(QueueUrl).port, new URL(strict.url).port)
  const got = await receive()
  assert.deepStrictEqual(bodies(got), ["a", "b"])
  await sqs.deleteMessageBatch({ QueueUrl, Entries: deletions(got) })
})

test("entries that break a rule fail, the others are done", async () => {
  const { Failed, Successful } = await sqs.sendMessageBatch({
    QueueUrl,
    Entries: [
      { Id: "late", MessageBody: "x", DelaySeconds: 901 },
      { Id: "good", MessageBody: "good 😀" },
      { Id: "odd", MessageBody: "\u0000" }
    ]
  })
  assert.deepStrictEqual(
    Successful?.map(({ Id }) => Id),
    ["good"]
  )
  assert.deepStrictEqual(
    Failed?.map(({ Code, Id, SenderFault }) => [Id, Code, SenderFault]),
    [
      ["late", "InvalidParameterValue", true],
      ["odd", "InvalidMessageContents", true]
    ]
  )
  const [got] = await receive()
  assert.strictEqual(got?.Body, "good 😀")
  const { Failed: unknown } = await sqs.deleteMessageBatch({
    QueueUrl,
    Entries: [
      { Id: "a", ReceiptHandle: "garbage" },
      { Id: "b", ReceiptHandle: got?.ReceiptHandle }
    ]
  })
  assert.deepStrictEqual(
    unknown?.map(({ Code, Id }) => [Id, Code]),
    [["a", "ReceiptHandleIsInvalid"]]
  )
})

test("visibility: 12 hours from the receipt, whatever was asked in between", async () => {
  await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
  const [got] = await receive()
  const change = (VisibilityTimeout: number) =>
    outcome(() => sqs.changeMessageVisibility({ QueueUrl, ReceiptHandle: got?.ReceiptHandle, VisibilityTimeout }))
  assert.strictEqual(await change(43_199), "done")
  await strict.forward(100_000)
  assert.strictEqual(await change(43_101), "InvalidParameterValue")
  assert.strictEqual(await change(43_098), "done")
  await strict.forward(43_097_000)
  assert.deepStrictEqual(await receive(), [])
  await strict.forward(1500)
  assert.strictEqual((await receive())[0]?.Attributes?.ApproximateReceiveCount, "2")
})

test("receipt handles: a deleted one, one of another queue, an expired one of a FIFO queue", async () => {
  await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
  const [got] = await receive()
  const { ReceiptHandle } = got ?? {}
  await sqs.deleteMessage({ QueueUrl, ReceiptHandle })
  assert.strictEqual(await outcome(() => sqs.deleteMessage({ QueueUrl, ReceiptHandle })), "done")
  const again = { QueueUrl, ReceiptHandle, VisibilityTimeout: 1 }
  assert.strictEqual(await outcome(() => sqs.changeMessageVisibility(again)), "InvalidParameterValue")
  const elsewhere = await create("elsewhere")
  assert.strictEqual(
    await outcome(() => sqs.deleteMessage({ QueueUrl: elsewhere, ReceiptHandle })),
    "ReceiptHandleIsInvalid"
  )

  const fifo = await create("f.fifo", { FifoQueue: "true", VisibilityTimeout: "5" })
  await sqs.sendMessage({ QueueUrl: fifo, MessageBody: "x", MessageGroupId: "g", MessageDeduplicationId: "1" })
  const [held] = await receive(fifo)
  await strict.forward(5001)
  assert.strictEqual(
    await outcome(() => sqs.deleteMessage({ QueueUrl: fifo, ReceiptHandle: held?.ReceiptHandle })),
    "InvalidParameterValue"
  )
})

test("the quota of messages in flight: an error for who does not wait, nothing for who does", async () => {
  await sendAll(..."abcdefghij".split(""))
  await sendAll(..."klmno".split(""))
  assert.lengthOf(await receive(), 10)
  assert.lengthOf(await receive(), 2)
  assert.strictEqual(await outcome(() => receive()), "OverLimit")
  const began = performance.now()
  assert.lengthOf(await receive(QueueUrl, 1), 0)
  assert.isAbove(performance.now() - began, 990)
  await strict.forward(31_000)
  assert.lengthOf(await receive(), 10)
})

test("a dead-letter queue must be there, and of the same type; a queue is purged once a minute", async () => {
  const redrive = (name: string) =>
    outcome(() =>
      sqs.setQueueAttributes({
        QueueUrl,
        Attributes: {
          RedrivePolicy: JSON.stringify({
            deadLetterTargetArn: `arn:aws:sqs:eu-west-1:000000000000:${name}`,
            maxReceiveCount: 3
          })
        }
      })
    )
  assert.strictEqual(await redrive("absent"), "InvalidParameterValue")
  await create("dead")
  await create("dead.fifo", { FifoQueue: "true" })
  assert.strictEqual(await redrive("dead.fifo"), "InvalidParameterValue")
  assert.strictEqual(await redrive("dead"), "done")
  const purge = () => outcome(() => sqs.purgeQueue({ QueueUrl }))
  assert.strictEqual(await purge(), "done")
  assert.match(await purge(), /PurgeQueueInProgress/)
  await strict.forward(60_000)
  assert.strictEqual(await purge(), "done")
})

test("who is not known, signs wrongly, or is elsewhere is refused, and who lacks a permission", async () => {
  const { accessKeyId, secretAccessKey } = parse(strict.url)?.credentials ?? assert.fail()
  const asked = async (config: SQSClientConfig) => {
    const client = connect(strict.url, config)
    const found = await outcome(() => client.listQueues({}))
    client.destroy()
    return found
  }
  assert.strictEqual(await asked({}), "done")
  const codes = [
    await asked({ credentials: { accessKeyId: "other", secretAccessKey } }),
    await asked({ credentials: { accessKeyId, secretAccessKey: "other" } }),
    await asked({ region: "us-east-1" })
  ]
  assert.deepStrictEqual(codes, ["InvalidClientTokenId", "SignatureDoesNotMatch", "SignatureDoesNotMatch"])

  strict.deny(["DeleteMessage"])
  await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
  const Entries = deletions(await receive())
  assert.strictEqual(await outcome(() => sqs.deleteMessageBatch({ QueueUrl, Entries })), "AccessDenied")
  strict.deny([])
  assert.strictEqual(await outcome(() => sqs.deleteMessageBatch({ QueueUrl, Entries })), "done")
})

test("errors on demand: so many calls of an action, every nth, and the SDK knows them as what they are", async () => {
  const burst = strict.fail({ action: "SendMessage", times: 2 })
  const send = () => outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x" }))
  assert.strictEqual(burst.left(), 2)
  assert.deepStrictEqual([await send(), await send(), await send()], ["RequestThrottled", "RequestThrottled", "done"])
  assert.strictEqual(burst.left(), 0)
  strict.fail({ every: 2, times: 2 }, "ServiceUnavailable")
  const codes = [await send(), await send(), await send(), await send(), await send(), await send()]
  assert.deepStrictEqual(codes, ["done", "ServiceUnavailable", "done", "ServiceUnavailable", "done", "done"])

  const patient = connect(strict.url, { maxAttempts: 3 })
  const three = strict.fail({ times: 2 }, "InternalFailure")
  assert.strictEqual(await outcome(() => patient.sendMessage({ QueueUrl, MessageBody: "x" })), "done")
  assert.strictEqual(three.left(), 0)
  patient.destroy()
})

test("entries on demand fail, and nothing is done about them", async () => {
  strict.failEntries({ action: "SendMessageBatch" }, 2)
  const { Failed, Successful } = await sendAll("a", "b", "c")
  assert.deepStrictEqual(
    Failed?.map(({ Code, SenderFault }) => [Code, SenderFault]),
    [
      ["InternalFailure", false],
      ["InternalFailure", false]
    ]
  )
  assert.lengthOf(Successful ?? [], 1)
  const got = await receive()
  assert.deepStrictEqual(bodies(got), ["c"])
  strict.failEntries({ action: "DeleteMessageBatch" }, 1)
  assert.lengthOf((await sqs.deleteMessageBatch({ QueueUrl, Entries: deletions(got) })).Failed ?? [], 1)
  await strict.forward(31_000)
  assert.deepStrictEqual(bodies(await receive()), ["c"])
})

test.each(["silence", "reset"] as const)("a lost answer (%s): the server acted all the same", async (how) => {
  const abort = new AbortController()
  const lost = strict.lose({ action: "SendMessage" }, how)
  const said = outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x" }, { abortSignal: abort.signal }))
  assert.deepStrictEqual(bodies(await receive(QueueUrl, 20)), ["x"])
  assert.strictEqual(lost.left(), 0)
  if (how === "silence") {
    // Nothing can be awaited here: this is about what does not happen.
    assert.strictEqual(await Promise.race([said, sleep(100, "silence")]), "silence")
    abort.abort()
    assert.strictEqual(await said, "AbortError")
  } else assert.strictEqual(await said, "ECONNRESET")
})

test("a call that is ignored is neither done nor answered, on its queue alone", async () => {
  const abort = new AbortController()
  const queue = QueueUrl.split("/").at(-1)!
  const elsewhere = strict.ignore({ action: ["SendMessage", "SendMessageBatch"], queue: `${queue}-other` })
  const ignored = strict.ignore({ action: ["SendMessage", "SendMessageBatch"], queue: [queue] })
  const said = outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x" }, { abortSignal: abort.signal }))
  await until("the call", () => ignored.left() === 0)
  abort.abort()
  assert.strictEqual(await said, "AbortError")
  await sqs.sendMessage({ QueueUrl, MessageBody: "y" })
  assert.deepStrictEqual(bodies(await receive(QueueUrl, 20)), ["y"])
  assert.strictEqual(elsewhere.left(), 1)
  elsewhere.end()
})

test("a call that is held arrives when it is released, also when its client has gone", async () => {
  const abort = new AbortController()
  const held = strict.hold({ action: "SendMessage" })
  const said = outcome(() => sqs.sendMessage({ QueueUrl, MessageBody: "x" }, { abortSignal: abort.signal }))
  await until("the call", () => held.left() === 0)
  abort.abort()
  assert.strictEqual(await said, "AbortError")
  assert.deepStrictEqual(await receive(), [])
  held.release()
  assert.deepStrictEqual(bodies(await receive(QueueUrl, 20)), ["x"])
})

test("a poll that is aborted goes on, and its message is in flight", async () => {
  const abort = new AbortController()
  const before = calls("ReceiveMessage")
  const polled = outcome(() => sqs.receiveMessage({ QueueUrl, WaitTimeSeconds: 20 }, { abortSignal: abort.signal }))
  await until("the poll", () => calls("ReceiveMessage") > before)
  abort.abort()
  assert.strictEqual(await polled, "AbortError")
  await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
  await until("the message in flight", async () => (await inFlight()) === 1)
  assert.deepStrictEqual(await receive(), [])
  await strict.forward(31_000)
  assert.strictEqual((await receive())[0]?.Attributes?.ApproximateReceiveCount, "2")
})

test("a long poll goes on when another one got the message", async () => {
  let polls = 0
  const link = await proxy(broker.nodes[0]?.port ?? 0, (_, from, bytes) => {
    if (from === "client" && bytes.includes("AmazonSQS.ReceiveMessage")) polls++
  })
  const url = new URL(broker.url)
  url.port = String(link.port)
  await using between = await strictSqs({ ...broker, url: url.href })
  const client = connect(between.url)
  const poll = async () => bodies((await client.receiveMessage({ QueueUrl, WaitTimeSeconds: 20 })).Messages ?? [])
  const both = [poll(), poll()]
  await until("both polls", () => polls === 2)
  await sqs.sendMessage({ QueueUrl, MessageBody: "first" })
  assert.deepStrictEqual(await Promise.race(both), ["first"])
  await until("the other one to go on", () => polls === 3)
  await sqs.sendMessage({ QueueUrl, MessageBody: "second" })
  assert.deepStrictEqual((await Promise.all(both)).flat().toSorted(), ["first", "second"])
  client.destroy()
  await link.close()
})

test("a duplicate: the same message again, with a handle that deletes it", async () => {
  await sqs.sendMessage({ QueueUrl, MessageBody: "x" })
  strict.duplicate(1)
  const [first] = await receive()
  const [second] = await receive()
  assert.strictEqual(second?.MessageId, first?.MessageId)
  assert.notStrictEqual(second?.ReceiptHandle, first?.ReceiptHandle)
  assert.strictEqual(second?.Attributes?.ApproximateReceiveCount, "2")
  assert.deepStrictEqual(await receive(), [])
  await sqs.deleteMessage({ QueueUrl, ReceiptHandle: second?.ReceiptHandle })
  await strict.forward(31_000)
  assert.deepStrictEqual(await receive(), [])
})
