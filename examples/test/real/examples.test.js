/** Each program of examples/ as its own process: it prints what the lines below `// prints:` say, and ends with exit code 0. */
import { execFile } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { start as startBroker } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import { afterAll, assert, describe, it } from "vitest"
const folder = fileURLToPath(new URL("../..", import.meta.url))
const start = async (file, env = {}, ...flags) => {
  const args = ["--conditions=@requeue/source", ...flags, join(folder, file)]
  const options = { cwd: folder, env: { ...process.env, ...env }, timeout: 120000 }
  return promisify(execFile)(process.execPath, args, options)
}
/** Runs a program that logs nothing. */
const run = async (...args) => {
  const { stderr, stdout } = await start(...args)
  assert.strictEqual(stderr, "")
  return stdout
}
/** What a program prints, as its last lines say. */
const expected = (file) => {
  const [, lines] = /^\/\/ prints:\n((?:\/\/ .*\n)+)$/m.exec(readFileSync(join(folder, file), "utf8")) ?? []
  if (lines === undefined) throw new Error(`${file} does not end with // prints:`)
  return lines.replaceAll(/^\/\/ /gm, "")
}
const onBroker = { "rabbitmq.ts": "rabbitmq", "nsq.ts": "nsq", "sqs-fifo.ts": "sqs" }
const others = ["testing.test.ts", "playground.ts", "sqs-lambda.ts", "vitest.config.ts", ...Object.keys(onBroker)]
const inMemory = globSync("*.ts", { cwd: folder }).filter((file) => !others.includes(file))
describe("in memory", () => {
  it.each(inMemory)("%s", async (file) => assert.strictEqual(await run(file), expected(file)))
  it("testing.test.ts", async () => assert.match(await run("testing.test.ts", {}, "--test"), /pass 1\n/))
  it("playground.ts", async () => assert.match((await start("playground.ts")).stdout, /_tag: 'Succeeded'/))
})
describe("on a broker", () => {
  const brokers = []
  afterAll(() => Promise.all(brokers.map((broker) => broker.dispose())))
  const serve = async (name) => {
    const broker = await startBroker(name)
    brokers.push(broker)
    return broker.url
  }
  it.each(Object.entries(onBroker))("%s", async (file, name) => {
    assert.strictEqual(await run(file, { BROKER_URL: await serve(name) }), expected(file))
  })
  it("sqs-lambda.ts", async () => {
    const url = await serve("sqs")
    const requeue = await connect(url)
    await requeue.consume("examples-orders", {}, () => {}) // creates the queue
    await requeue.close()
    const { host, password, searchParams, username } = new URL(url)
    const env = {
      AWS_REGION: searchParams.get("region"),
      AWS_ACCESS_KEY_ID: username,
      AWS_SECRET_ACCESS_KEY: password,
      AWS_ENDPOINT_URL_SQS: `http://${host}`
    }
    assert.strictEqual(await run("test/real/invoke.ts", env), expected("sqs-lambda.ts"))
  })
})
it("the README lists every program", () => {
  const readme = readFileSync(join(folder, "README.md"), "utf8")
  for (const file of globSync("*.ts", { cwd: folder })) {
    if (file !== "vitest.config.ts") assert.include(readme, `](${basename(file)})`)
  }
})
