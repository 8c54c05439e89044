import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, test } from "vitest"
import { handshake } from "../../src/amqp.ts"
import { build, installed } from "../../src/nsq/installation.ts"
import { kinds } from "../../src/start.ts"

const program = fileURLToPath(new URL("../../src/cli.ts", import.meta.url))
// Brokers that somebody keeps up on this machine are none of this test's business.
const cache = mkdtempSync(join(tmpdir(), "requeue-cli-"))

// In a cache that is empty it would be built again.
const { folder: nsq } = installed()[0] ?? (await build(console.error))

const cli = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [program, ...args], {
    encoding: "utf8",
    env: {
      ...process.env,
      PATH: `${nsq}${delimiter}${process.env["PATH"]}`,
      XDG_CACHE_HOME: cache,
      REQUEUE_RABBITMQ_URL: "",
      REQUEUE_NSQ_URL: "",
      REQUEUE_SQS_URL: ""
    }
  })

afterAll(() => {
  cli("down")
  rmSync(cache, { recursive: true })
})

test("up, status and down", async () => {
  const up = cli("up", "rabbitmq")
  assert.strictEqual(up.status, 0, up.stderr)
  const url = up.stdout.trim()
  assert.match(url, /^amqp:\/\/\S+$/)
  const version = await handshake(url)

  const status = cli("status", "rabbitmq")
  assert.strictEqual(status.status, 0)
  assert.match(status.stdout, new RegExp(`rabbitmq +${version} +1 +up +until down .*${url}`))

  const again = cli("up", "rabbitmq")
  assert.strictEqual(again.stdout.trim(), url)
  assert.include(again.stderr, "is up already")
  assert.strictEqual(cli("up", "rabbitmq", "--nodes", "3").status, 1)

  const down = cli("down")
  assert.strictEqual(down.status, 0)
  assert.include(down.stderr, "rabbitmq is down")
  assert.include(down.stderr, "nsq is not up")
  assert.isFalse(await kinds.rabbitmq.answers(url))
  assert.strictEqual(cli("status", "rabbitmq").status, 1)
  assert.strictEqual(cli("status").status, 0)
  assert.include(cli("down", "rabbitmq").stderr, "rabbitmq is not up")
})

test("up of several nsqd prints them all, and where clients find them", () => {
  const up = cli("up", "nsq", "--nodes", "2")
  assert.strictEqual(up.status, 0, up.stderr)
  const urls = up.stdout.trim().split("\n")
  assert.strictEqual(urls.length, 2)
  for (const url of urls) assert.match(url, /^nsq:\/\/127\.0\.0\.1:\d+$/)
  assert.match(up.stderr, /management: http:\/\/127\.0\.0\.1:\d+/)
  assert.match(cli("status", "nsq").stdout, new RegExp(`nsq +1\\.\\S+ +2 +up +until down .*${urls[0]}`))
  assert.strictEqual(cli("up", "nsq", "--nodes", "2").stdout.trim(), urls[0])
  assert.strictEqual(cli("down", "nsq").status, 0)
})

test("a server by name", () => {
  const up = cli("up", "sqs")
  assert.strictEqual(up.status, 0, up.stderr)
  assert.match(up.stdout.trim(), /^sqs:\/\/requeue:\w+@127\.0\.0\.1:\d+\?region=eu-west-1$/)
  assert.match(cli("status", "sqs").stdout, /sqs +fauxqs \d+\.\d+\.\d+ +1 +up +until down/)
  assert.strictEqual(cli("up", "sqs", "--version", "fauxqs").stdout, up.stdout)
  assert.match(cli("up", "sqs", "--version", "moto").stderr, /fauxqs \S+ with 1 node\(s\) is up: take it down first/)
  assert.include(cli("down", "sqs").stderr, "sqs is down")
})

test("misuse is explained", () => {
  assert.strictEqual(cli("--help").status, 0)
  assert.include(cli("--help").stdout, "npm run brokers -- <command>")
  for (const args of [
    [],
    ["sideways"],
    ["up", "kafka"],
    ["up", "rabbitmq", "--nodes", "2"],
    ["up", "nsq", "--nodes", "4"],
    ["up", "--version", "x"],
    ["up", "rabbitmq", "--version", "moto"],
    ["--what"]
  ]) {
    const { status, stderr } = cli(...args)
    assert.strictEqual(status, 2, args.join(" "))
    assert.include(stderr, "Exit codes")
  }
})
