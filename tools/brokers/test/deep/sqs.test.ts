import { CreateQueueCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs"
import { afterEach, assert, test, vi } from "vitest"
import { start } from "../../src/index.ts"
import { parse } from "../../src/sqs/address.ts"
import { handshake } from "../../src/sqs/handshake.ts"
import { checkBorrowed, checkDispose, checkOwnersDeath, failureOf, starting } from "../real/lifecycle.ts"

const startOne = starting("sqs", (version?: string) => start("sqs", { version }))

const clients: Array<SQSClient> = []
const clientOf = (url: string): SQSClient => {
  const { credentials, endpoint = "", region = "" } = parse(url) ?? {}
  const client = new SQSClient({ endpoint, region, ...(credentials === undefined ? {} : { credentials }) })
  clients.push(client)
  return client
}
afterEach(() => {
  for (const client of clients.splice(0)) client.destroy()
})

const echo = async (url: string): Promise<string | undefined> => {
  const client = clientOf(url)
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: "echo" }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "hello" }))
  const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20 }))
  return Messages?.[0]?.Body
}

test("it takes a message; kill, start and restart keep the port; after dispose nothing is left", async () => {
  const broker = await startOne()
  const [node] = broker.nodes
  assert.match(broker.version, /^fauxqs \d+\.\d+\.\d+$/)
  assert.strictEqual(await echo(broker.url), "hello")
  await broker.kill()
  assert.match(await failureOf(() => handshake(broker.url)), /ECONNREFUSED|ECONNRESET/)
  await broker.start()
  assert.strictEqual(await echo(broker.url), "hello")
  const pid = node?.pid()
  await broker.restart()
  assert.notStrictEqual(node?.pid(), pid)

  await checkDispose(broker)
})

test.each(["elasticmq", "moto"])("%s by name", async (name) => {
  const broker = await startOne(name)
  assert.match(broker.version, new RegExp(`^${name} \\d`))
  assert.strictEqual(await echo(broker.url), "hello")
})

test("a process that dies takes its server with it", () => checkOwnersDeath("sqs", "SIGKILL"))

test("a server that nobody has: every source says why", async () => {
  const failure = await failureOf(() => start("sqs", { version: "goaws" }))
  assert.match(failure, /^No SQS server goaws here\. Ask for fauxqs, elasticmq, moto, or set REQUEUE_SQS_URL/)
  for (const source of ["the environment", "fauxqs", "ElasticMQ on Java", "ElasticMQ in Docker", "moto"]) {
    assert.include(failure, `- ${source}: `)
  }
  assert.include(await failureOf(() => start("sqs", { nodes: 3 })), "sqs has 1 nodes, got 3")
})

test("the environment's server is used; what is wrong with its address is said", async () => {
  const real = await startOne()
  await checkBorrowed("sqs", real, () => start("sqs"))
  await handshake(real.url)

  const wrong: ReadonlyArray<[url: string, said: RegExp]> = [
    ["sqs://me:secret@127.0.0.1:1?region=eu-west-1", /no answer from sqs:\/\/\*\*\*@127.*ECONNREFUSED/],
    ["sqs://me:secret@127.0.0.1:9324", /must look like sqs:\/\/key:secret@host:9324\?region=eu-west-1/],
    ["http://me:secret@127.0.0.1:9324?region=eu-west-1", /must look like/]
  ]
  for (const [url, said] of wrong) {
    vi.stubEnv("REQUEUE_SQS_URL", url)
    const failure = await failureOf(() => start("sqs"))
    assert.match(failure, /^REQUEUE_SQS_URL/)
    assert.match(failure, said)
    assert.notMatch(failure, /me:secret/)
  }
})
