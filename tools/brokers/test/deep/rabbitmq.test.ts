import { connect } from "amqplib"
import type { EventEmitter } from "node:events"
import { afterAll, assert, beforeAll, test, vi } from "vitest"
import { start, type RabbitMqBroker } from "../../src/index.ts"
import { handshake } from "../../src/amqp.ts"
import { checkBorrowed, checkDispose, checkOwnersDeath, failedStart, failureOf, starting } from "../real/lifecycle.ts"

const startOne = starting("rabbitmq", () => start("rabbitmq"))

/** For all tests that kill none. */
let one: RabbitMqBroker
let two: RabbitMqBroker
beforeAll(async () => {
  ;[one, two] = await Promise.all([start("rabbitmq"), start("rabbitmq")])
})
afterAll(() => Promise.all([one.dispose(), two.dispose()]))

/** Unlike `once` of node:events it does not fail when an error comes first. */
const closed = (emitter: EventEmitter) => new Promise((resolve) => emitter.once("close", resolve))

test("a message survives SIGKILL, a queue a restart in order, and ports both; after dispose nothing is left", async () => {
  const broker = await startOne()
  assert.match(broker.version, /^\d+\.\d+\.\d+/)
  assert.strictEqual(await handshake(broker.url), broker.version)

  const declaring = await connect(broker.url)
  const declared = closed(declaring)
  declaring.on("error", () => {})
  await (await declaring.createChannel()).assertQueue("kept", { durable: true })
  const pid = broker.nodes[0]?.pid()
  // A queue that was declared just before SIGKILL may be gone with all that was confirmed in it: seen on 3.10.8, and the
  // more often the busier the machine. What has been through a restart in order stays.
  await broker.restart()
  await declared
  assert.notStrictEqual(broker.nodes[0]?.pid(), pid)

  const before = await connect(broker.url)
  before.on("error", () => {})
  const channel = await before.createConfirmChannel()
  channel.on("error", () => {})
  channel.sendToQueue("kept", Buffer.from("hello"), { persistent: true })
  await channel.waitForConfirms()
  const cut = closed(before)
  await broker.kill()
  await cut
  assert.match(await failureOf(() => handshake(broker.url)), /ECONNRE(FUSED|SET)/)

  await broker.start()
  const after = await connect(broker.url)
  const message = await (await after.createChannel()).get("kept", { noAck: true })
  assert.isTrue(message !== false && message.content.toString() === "hello")
  await after.close()

  await checkDispose(broker)
})

test("two at once are strangers; each has its management API and its tool", async () => {
  assert.notStrictEqual(one.url, two.url)
  const connection = await connect(one.url)
  connection.on("error", () => {})
  await (await connection.createChannel()).assertQueue("only here", { durable: true })

  const { username, password, host } = new URL(one.managementUrl ?? "")
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const response = await fetch(`http://${host}/api/queues`, { headers })
  assert.deepStrictEqual(
    ((await response.json()) as ReadonlyArray<{ name: string }>).map(({ name }) => name),
    ["only here"]
  )
  assert.include(await one.nodes[0]?.ctl("list_queues", "--quiet"), "only here")
  assert.notInclude(await two.nodes[0]?.ctl("list_queues", "--quiet"), "only here")

  await connection.close()
})

test.each(["SIGTERM", "SIGKILL"] as const)("a process that dies of %s takes its broker with it", (signal) =>
  checkOwnersDeath("rabbitmq", signal)
)

test("a server that cannot start fails with the end of its log, and leaves nothing", async () => {
  const failure = await failedStart(() => start("rabbitmq", { deadline: 300 }))
  assert.match(failure, /RabbitMQ \S+ on 127\.0\.0\.1:\d+ is not ready after 300 ms/)
  assert.match(failure, /Its log ends:\n/)
})

test("a version that nobody has: every source says why", async () => {
  const failure = await failureOf(() => start("rabbitmq", { version: "3.7" }))
  assert.match(
    failure,
    /^No RabbitMQ 3\.7 here\. Install rabbitmq-server, or start Docker, or set REQUEUE_RABBITMQ_URL/
  )
  for (const source of ["the environment", "a Docker engine", "an installed server", "Debian's packages"]) {
    assert.include(failure, `- ${source}: `)
  }
})

test("the environment's broker is used; what cannot be done to it is refused, what is wrong with it is said", async () => {
  const real = one
  await checkBorrowed("rabbitmq", real, () => start("rabbitmq"))
  assert.strictEqual(await handshake(real.url), real.version)

  const at = real.url.slice(real.url.indexOf("@"))
  const wrong: ReadonlyArray<[url: string, version: string | undefined, said: RegExp]> = [
    [`amqp://requeue:wrong${at}`, undefined, /: no connection to amqp:\/\/\*\*\*@127.*ACCESS_REFUSED/],
    [`${real.url}absent`, undefined, /absent.*not found/],
    ["amqp://me:secret@127.0.0.1:1/", undefined, /ECONNREFUSED 127\.0\.0\.1:1\. Correct it, or unset it/],
    [real.managementUrl ?? "", undefined, /must look like amqp:\/\/user:password@host:5672\/vhost/],
    [
      (real.managementUrl ?? "").replace("http", "amqp"),
      undefined,
      /does not speak AMQP|closed during the AMQP handshake/
    ],
    [real.url, "3.7", /RabbitMQ 3\.7 was requested, but .* is \d+\.\d+\.\d+/]
  ]
  for (const [url, version, said] of wrong) {
    vi.stubEnv("REQUEUE_RABBITMQ_URL", url)
    const failure = await failureOf(() => start("rabbitmq", { version }))
    assert.match(failure, /^REQUEUE_RABBITMQ_URL/)
    assert.match(failure, said)
    assert.notMatch(failure, /secret|wrong|requeue:/)
  }
})
