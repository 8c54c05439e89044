import { CreateQueueCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { afterEach, assert, test, vi } from "vitest"
import { start, type SqsBroker } from "../src/index.ts"
import { home, list } from "../src/Instance.ts"
import { marked } from "../src/processes.ts"
import { parse } from "../src/sqs/address.ts"
import { handshake } from "../src/sqs/handshake.ts"

vi.setConfig({ testTimeout: 60_000 })
vi.stubEnv("REQUEUE_SQS_URL", "")

const started: Array<SqsBroker> = []
const startOne = async (version?: string): Promise<SqsBroker> => {
  const broker = await start("sqs", { version })
  started.push(broker)
  return broker
}
const clients: Array<SQSClient> = []
const clientOf = (url: string): SQSClient => {
  const { credentials, endpoint = "", region = "" } = parse(url) ?? {}
  const client = new SQSClient({ endpoint, region, ...(credentials === undefined ? {} : { credentials }) })
  clients.push(client)
  return client
}
afterEach(async () => {
  vi.stubEnv("REQUEUE_SQS_URL", "")
  for (const client of clients.splice(0)) client.destroy()
  for (const broker of started.splice(0)) await broker.dispose()
})

const recordOf = (url: string) => list().find(({ record }) => record.notes["url"] === url)

const failureOf = (action: () => Promise<unknown>): Promise<string> =>
  action().then(
    () => "no failure",
    (cause: Error) => cause.message
  )

const echo = async (url: string): Promise<string | undefined> => {
  const client = clientOf(url)
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: "echo" }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "hello" }))
  const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5 }))
  return Messages?.[0]?.Body
}

test("it takes a message; kill, start and restart keep the port; after dispose nothing is left", async () => {
  const broker = await startOne()
  const [node] = broker.nodes
  assert.match(broker.version, /^fauxqs \d+\.\d+\.\d+$/)
  assert.strictEqual(await echo(broker.url), "hello")
  await broker.kill()
  assert.match(await failureOf(() => handshake(broker.url, 5000)), /ECONNREFUSED|ECONNRESET/)
  await broker.start()
  assert.strictEqual(await echo(broker.url), "hello")
  const pid = node?.pid()
  await broker.restart()
  assert.notStrictEqual(node?.pid(), pid)

  const entry = recordOf(broker.url)
  assert.isNotEmpty(marked(entry?.record.id ?? ""))
  await broker.dispose()
  assert.deepStrictEqual(marked(entry?.record.id ?? ""), [])
  assert.isFalse(existsSync(entry?.folder ?? ""))
})

test("the clock of fauxqs can be moved: a delay ends when it says so", async () => {
  const broker = await startOne()
  const client = clientOf(broker.url)
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: "later" }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "in 15 minutes", DelaySeconds: 900 }))
  const receive = async () => {
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 1 }))
    return Messages.map(({ Body }) => Body)
  }
  await broker.nodes[0]?.forward?.(890_000)
  assert.deepStrictEqual(await receive(), [])
  const waiting = receive()
  await broker.nodes[0]?.forward?.(10_000)
  assert.deepStrictEqual(await waiting, ["in 15 minutes"])
})

const slow = process.env["REQUEUE_SLOW_TESTS"] === "1"
test.runIf(slow).each(["elasticmq", "moto"])("%s by name", { timeout: 600_000 }, async (name) => {
  const broker = await startOne(name)
  assert.match(broker.version, new RegExp(`^${name} \\d`))
  assert.strictEqual(await echo(broker.url), "hello")
})

test.each(["SIGTERM", "SIGKILL"] as const)("a process that dies of %s takes its server with it", async (signal) => {
  const program = fileURLToPath(new URL("startAndWait.ts", import.meta.url))
  const owner = spawn(process.execPath, [program, "sqs"], { stdio: ["ignore", "pipe", "inherit"] })
  const [url] = (await once(createInterface(owner.stdout), "line")) as [string]
  const { id } = recordOf(url)?.record ?? assert.fail("no record")
  assert.isNotEmpty(marked(id))
  owner.kill(signal)
  await vi.waitUntil(() => recordOf(url) === undefined, { timeout: 10_000 })
  assert.deepStrictEqual(marked(id), [])
})

test("a server that cannot start fails with the end of its log, and leaves nothing", async () => {
  const before = readdirSync(home("run"))
  const failure = await failureOf(() => start("sqs", { deadline: 1 }))
  assert.match(failure, /fauxqs \S+ on 127\.0\.0\.1:\d+ does not answer SQS calls after 1 ms/)
  assert.match(failure, /Its log ends:\n/)
  assert.deepStrictEqual(
    readdirSync(home("run")).filter((name) => !before.includes(name)),
    []
  )
})

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
  vi.stubEnv("REQUEUE_SQS_URL", real.url)
  const broker = await start("sqs")
  assert.strictEqual(broker.url, real.url)
  assert.strictEqual(
    await failureOf(() => broker.kill()),
    "kill() needs a broker that was started here: unset REQUEUE_SQS_URL"
  )
  await broker.dispose()
  await handshake(real.url, 5000)

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
