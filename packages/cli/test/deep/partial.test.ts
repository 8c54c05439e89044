/** What the command line says of a broker of which a part is away, on real nsqd. */
import { deadLetters } from "@requeue/operations/promise"
import { start } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import { afterAll, assert, test } from "vitest"
import { requeue } from "../requeue.ts"
import { until } from "../until.ts"

const broker = await start("nsq", { nodes: 2 })
afterAll(() => broker.dispose())

const [first, second] = broker.nodes
const both = `${first!.url}?nsqd=127.0.0.1:${second!.port}`
const away = `nsqd 127.0.0.1:${second!.port} has not answered`

/** The parts that are told to be missing, and whether each is the second nsqd. The adapter's log is on the same stream. */
const partial = (stderr: string) =>
  stderr
    .split("\n")
    .filter((line) => line.startsWith("requeue: partial: "))
    .map((line) => line.includes(away))

const run = (args: string, queue: string) => requeue([...args.split(" "), "--url", both, "--queue", queue])

const bury = async (queue: string) => {
  await using requeue = await connect(first!.url, { logLevel: "None" })
  await requeue.consume(queue, { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
  await requeue.send(queue, "m")
  await until("the dead letter", async () => (await deadLetters(requeue, `${queue}.dlq`).count()) === 1)
}

test("a part that is away is told on standard error, the others are told and worked on, and the exit code is 1", async () => {
  await bury("half")
  await second!.stop()
  for (const [args, text] of [
    ["status", /half +0 +0 +0 +1 /],
    ["dead-letters list", /half.dlq: 1 of 1 dead letters/],
    ["dead-letters group", /1 +half +retries-exhausted/],
    ["dead-letters redrive --dry-run", /would redrive 1 of 1/],
    ["dead-letters purge --all --yes", /removed 1/]
  ] as const) {
    const { code, stderr, stdout } = await run(args, "half")
    assert.match(stdout, text)
    assert.deepStrictEqual(partial(stderr), [true], args)
    assert.strictEqual(code, 1, args)
  }
  const { code, stderr, stdout } = await run("status --json", "half")
  assert.deepInclude(JSON.parse(stdout).queues[0], { queue: "half", paused: false, dead: { "half.dlq": 0 } })
  const [told] = stderr.split("\n").filter((line) => line.startsWith('{"missing"'))
  assert.deepInclude(JSON.parse(told!).missing, { broker: "nsq", reason: "ConnectionFailed" })
  assert.strictEqual(code, 1)
  await second!.start()
  assert.deepInclude(await run("status", "half"), { code: 0, stderr: "" })
})
