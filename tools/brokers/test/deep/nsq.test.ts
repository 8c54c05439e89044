import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, test, vi } from "vitest"
import { start, type NsqBroker, type NsqStartOptions } from "../../src/index.ts"
import { identify } from "../../src/nsq/identify.ts"
import {
  checkBorrowed,
  checkDispose,
  checkOwnersDeath,
  failedStart,
  failureOf,
  recordOf,
  starting,
  until
} from "../real/lifecycle.ts"

const startOne = starting("nsq", (options?: NsqStartOptions) => start("nsq", options))

const http = async (base: string | undefined, path: string, body?: string) => {
  const response = await fetch(`${base}${path}`, body === undefined ? {} : { method: "POST", body })
  assert.isTrue(response.ok, `${path}: ${response.status}`)
  return response.text()
}

interface Stats {
  readonly topics: ReadonlyArray<{ readonly topic_name: string; readonly channels: ReadonlyArray<{ depth: number }> }>
}

const depthOf = async (base: string | undefined, topic: string): Promise<number | undefined> => {
  const { topics } = JSON.parse(await http(base, `stats?format=json&topic=${topic}`)) as Stats
  return topics[0]?.channels[0]?.depth
}

/** The TCP ports of the nsqd that nsqlookupd knows. */
const registered = async ({ managementUrl }: NsqBroker): Promise<ReadonlyArray<number>> => {
  const { producers } = JSON.parse(await http(managementUrl, "nodes")) as { producers: Array<{ tcp_port: number }> }
  return producers.map(({ tcp_port: port }) => port).toSorted((a, b) => a - b)
}

test("a restart in order keeps messages, ports and data; SIGKILL does not keep what was in memory", async () => {
  const broker = await startOne()
  assert.match(broker.version, /^\d+\.\d+\.\d+/)
  assert.strictEqual(await identify(broker.url), broker.version)
  const { managementUrl: nsqd, pid } = broker.nodes[0] ?? assert.fail("no node")

  await http(nsqd, "topic/create?topic=kept", "")
  await http(nsqd, "channel/create?topic=kept&channel=all", "")
  await http(nsqd, "pub?topic=kept", "hello")
  await until("depth 1", async () => (await depthOf(nsqd, "kept")) === 1)
  const before = pid()
  await broker.restart()
  assert.notStrictEqual(pid(), before)
  assert.strictEqual(await depthOf(nsqd, "kept"), 1)

  await broker.kill()
  assert.isUndefined(pid())
  assert.match(await failureOf(() => identify(broker.url)), /ECONNRE(FUSED|SET)/)
  await broker.start()
  assert.strictEqual(await depthOf(nsqd, "kept"), 1)
  await http(nsqd, "pub?topic=kept", "in memory")
  await until("depth 2", async () => (await depthOf(nsqd, "kept")) === 2)
  await broker.kill()
  await broker.start()
  assert.strictEqual(await depthOf(nsqd, "kept"), 1)

  await checkDispose(broker)
})

test("several nsqd are found through nsqlookupd, which can be gone for a while", async () => {
  const broker = await startOne({ nodes: 2 })
  const ports = broker.nodes.map(({ port }) => port)
  assert.deepStrictEqual(await registered(broker), ports)
  await broker.nodes[1]?.kill()
  await until("nsqlookupd to know 1", async () => (await registered(broker)).length === 1)
  assert.strictEqual(await identify(broker.url), broker.version)
  await broker.nodes[1]?.start()
  await until("nsqlookupd to know 2", async () => (await registered(broker)).length === 2)

  await broker.lookupd?.kill()
  assert.match(await failureOf(() => registered(broker)), /fetch failed/)
  await broker.lookupd?.start()
  // An nsqd connects again within 30 s, or when it has a topic to tell.
  let topics = 0
  await until("nsqlookupd to know both", async () => {
    for (const { managementUrl } of broker.nodes) await http(managementUrl, `topic/create?topic=t${topics++}`, "")
    return (await registered(broker)).length === 2
  })
  assert.deepStrictEqual(await registered(broker), ports)
})

test("flags are those of every nsqd; all that listens does so on 127.0.0.1", async () => {
  const broker = await startOne({ nodes: 2, flags: { "max-req-timeout": "3s", "max-msg-size": 2048 } })
  for (const { managementUrl } of broker.nodes) {
    assert.strictEqual(await http(managementUrl, "config/max_req_timeout"), "3000000000")
    assert.strictEqual(await http(managementUrl, "config/max_msg_size"), "2048")
  }
  const { folder } = recordOf(broker.url) ?? assert.fail("no record")
  for (const name of ["n1", "n2", "lookupd"]) {
    const addresses = readFileSync(join(folder, `${name}.log`), "utf8").match(/(?<=listening on ).*(?=:)/g)
    assert.deepStrictEqual(addresses, ["127.0.0.1", "127.0.0.1"])
  }
})

test("a process that dies takes its broker with it", () => checkOwnersDeath("nsq", "SIGKILL"))

test("an nsqd that cannot start fails with the end of its log, and leaves nothing", async () => {
  const failure = await failedStart(() =>
    start("nsq", { flags: { "tls-cert": "absent.pem", "tls-key": "absent.pem" } })
  )
  assert.match(failure, /nsqd on 127\.0\.0\.1:\d+ ended before it was ready\. Its log ends:\n[^]*absent\.pem/)
})

test("a version that nobody has: every source says why", async () => {
  const failure = await failureOf(() => start("nsq", { version: "0.3" }))
  assert.match(
    failure,
    /^No NSQ 0\.3 here\. Install nsqd and nsqlookupd, or Go, or start Docker, or set REQUEUE_NSQ_URL/
  )
  for (const source of ["the environment", "a Docker engine", "an installed nsqd", "Go"]) {
    assert.include(failure, `- ${source}: `)
  }
})

test("the environment's nsqd is used; what cannot be done to it is refused, what is wrong with it is said", async () => {
  const real = await startOne()
  const broker = await checkBorrowed("nsq", real, () => start("nsq"))
  assert.isUndefined(broker.lookupd)
  assert.strictEqual(await identify(real.url), real.version)

  const wrong: ReadonlyArray<[url: string, options: NsqStartOptions, said: RegExp]> = [
    ["nsq://127.0.0.1:1", {}, /ECONNREFUSED 127\.0\.0\.1:1\. Correct it, or unset it/],
    [
      `nsq://127.0.0.1:${(real.nodes[0]?.port ?? 0) + 1}`,
      {},
      /does not speak NSQ's protocol|closed before an nsqd answered/
    ],
    [real.managementUrl ?? "", {}, /must look like nsq:\/\/host:4150/],
    [`${real.url},127.0.0.1:1`, {}, /must look like nsq:\/\/host:4150/],
    [real.url, { version: "0.3" }, /NSQ 0\.3 was requested, but .* is \d+\.\d+\.\d+/],
    [real.url, { nodes: 2 }, /2 nodes cannot be made of one address/],
    [real.url, { flags: { "msg-timeout": "1s" } }, /--msg-timeout can be set only where nsqd is started/]
  ]
  for (const [url, options, said] of wrong) {
    vi.stubEnv("REQUEUE_NSQ_URL", url)
    const failure = await failureOf(() => start("nsq", options))
    assert.match(failure, /^REQUEUE_NSQ_URL/)
    assert.match(failure, said)
  }
})
