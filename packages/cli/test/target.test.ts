/** What a command acts on, by config file and flags. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, onTestFinished } from "vitest"
import { requeue } from "./requeue.ts"

const file = `
broker: local
brokers:
  local: "memory:"
  spare: { url: "memory:", maxMessages: 5 }
  broken: { url: "memory:", maxMesages: 5 }
  staging: "memory:"
  cloud: "sqs://eu-west-1"
  secret: "amqp://me:\${RABBIT_PASSWORD}@127.0.0.1:1"
policies:
  patient: { maxRetries: 8 }
queues:
  orders: { name: shop.orders, retry: patient }
  invoices: {}
  reports: { broker: spare }
`

const project = async (): Promise<string> => {
  const cwd = await mkdtemp(join(tmpdir(), "requeue-cli-"))
  onTestFinished(() => rm(cwd, { recursive: true }))
  await writeFile(join(cwd, "requeue.config.yaml"), file)
  return cwd
}

interface Planned {
  readonly broker: string
  readonly queues: ReadonlyArray<{ readonly queue: string }>
}

describe("without a URL", () => {
  it.each<readonly [ReadonlyArray<string>, string, ReadonlyArray<string>]>([
    [[], "local", ["shop.orders", "invoices"]],
    [["--queue", "orders"], "local", ["shop.orders"]],
    [["--queue", "shop.orders"], "local", ["shop.orders"]],
    [["-q", "invoices", "-q", "orders"], "local", ["invoices", "shop.orders"]],
    [["--queue", "reports"], "spare", ["reports"]],
    [["--broker", "spare"], "spare", ["reports"]],
    [["--broker", "staging"], "staging", ["shop.orders", "invoices"]],
    [["--broker", "spare", "--queue", "orders"], "spare", ["shop.orders"]]
  ])("%j means %s and %j", async (flags, broker, queues) => {
    const { code, stderr, stdout } = await requeue(["plan", "--json", ...flags], { cwd: await project() })
    assert.deepStrictEqual([code, stderr], [0, ""])
    const planned = JSON.parse(stdout) as Planned
    assert.strictEqual(planned.broker, broker)
    assert.deepStrictEqual(
      planned.queues.map(({ queue }) => queue),
      queues
    )
  })

  it.each<readonly [ReadonlyArray<string>, string]>([
    [["-q", "ordres"], "--queue: requeue.config.yaml has no queue named ordres. Did you mean orders?"],
    [
      ["-q", "orders", "-q", "reports"],
      "--queue: these queues are on several brokers: local, spare. Give queues of one broker, or --broker as well"
    ],
    [
      ["--broker", "broken"],
      "requeue.config.yaml: brokers.broken.maxMesages: unknown option. Did you mean maxMessages?"
    ],
    [
      ["--broker", "lokal"],
      "requeue.config.yaml has no queues on broker lokal, only on local, spare. Did you mean local?"
    ],
    [
      ["--broker", "lokal", "-q", "orders"],
      "requeue.config.yaml: brokers: there is no broker named lokal. Did you mean local?"
    ],
    [
      ["--broker", "broken", "-q", "orders"],
      "requeue.config.yaml: brokers.broken.maxMesages: unknown option. Did you mean maxMessages?"
    ],
    [
      ["--broker", "secret", "-q", "orders"],
      "requeue.config.yaml: brokers.secret.url: the environment variable RABBIT_PASSWORD is not set. Set RABBIT_PASSWORD"
    ],
    [
      ["--broker", "cloud", "-q", "orders", "--policy", '{"deadLetter":"graves.fifo"}'],
      "retry.deadLetter (queue shop.orders, broker sqs): graves.fifo is a FIFO queue, shop.orders a standard one"
    ],
    [["--policy", "patiant"], "--policy: there is no policy named patiant. Policies: patient, cloudflareQueues"],
    [["--config", "mine.yaml"], "mine.yaml: there is no such file. Check the path"],
    [["--url", "memory:", "--broker", "local"], "--url and --broker do not go together. Give one of them"]
  ])("%j is refused", async (flags, message) => {
    const { code, stderr, stdout } = await requeue(["plan", ...flags], { cwd: await project() })
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.include(stderr, `requeue: ${message}`)
  })

  it("says what is wrong with the file as a value, with --json", async () => {
    const { stderr } = await requeue(["plan", "--broker", "broken", "-q", "orders", "--json"], { cwd: await project() })
    const { error } = JSON.parse(stderr) as { readonly error: { readonly file: string; readonly problems: unknown } }
    assert.strictEqual(error.file, "requeue.config.yaml")
    assert.deepInclude(error, {
      problems: [
        { path: ["brokers", "broken", "maxMesages"], detail: "unknown option", remedy: "Did you mean maxMessages?" }
      ]
    })
  })

  it("takes a broker from the environment, and shows no secret", async () => {
    const env = { REQUEUE_BROKER: "secret", RABBIT_PASSWORD: "hunter2" }
    const { code, stderr } = await requeue(["plan", "-q", "orders"], { cwd: await project(), env })
    assert.strictEqual(code, 3)
    assert.include(stderr, "ECONNREFUSED")
    assert.notInclude(stderr, "hunter2")
  })
})
