import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { adapter as memory } from "@requeue/adapter-memory"
import type { Adapter, Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

/** Adds a lateness and a growth to a plan of the memory broker. */
const rounded = <E>(plan: Effect.Effect<Plan.Plan, E>): Effect.Effect<Plan.Plan, E> =>
  Effect.map(plan, (made) => ({ ...made, lateness: "late by up to 2s", growth: "and up to 21 queues on demand" }))

const { operate, plan } = memory.operations!
const late: Adapter.Adapter = {
  ...memory,
  operations: {
    plan: (...about) => rounded(plan(...about)),
    operate: (...about) =>
      Effect.map(operate(...about), (operator) => ({ ...operator, plan: (request) => rounded(operator.plan(request)) }))
  }
}

/** Runs a command on a broker that rounds delays up. */
const onLate = async (...args: ReadonlyArray<string>) => {
  const cwd = mkdtempSync(join(tmpdir(), "requeue-check-"))
  Object.assign(globalThis, { lateAdapter: late })
  const broker = "{ url: 'memory:', adapter: globalThis.lateAdapter }"
  writeFileSync(
    join(cwd, "requeue.config.mjs"),
    `export default { brokers: { main: ${broker} }, queues: { orders: {} } }`
  )
  try {
    return await requeue(args, { cwd })
  } finally {
    Reflect.deleteProperty(globalThis, "lateAdapter")
    rmSync(cwd, { recursive: true })
  }
}

const orders = ["check", "--url", "memory:", "--queue", "orders"]

describe("requeue check", () => {
  it("says how each requirement is met", async () => {
    const { code, stderr, stdout } = await requeue([...orders, "--policy", "webhookSender"])
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.strictEqual(
      stdout,
      [
        "queue   field           support  detail",
        "orders  retry.backoff   exact",
        "orders  handlerTimeout  exact",
        ""
      ].join("\n")
    )
  })

  it("ends with 1 when something is impossible, and says what to do", async () => {
    const { code, stderr, stdout } = await requeue([...orders, "--policy", '{"deadLetter":"orders"}'])
    assert.deepStrictEqual([code, stderr], [1, ""])
    assert.match(
      stdout,
      /orders +retry\.deadLetter +impossible +.*Set deadLetter to another queue, or remove it to use orders\.dlq/
    )
  })

  it("knows what only some queues of a broker cannot do", async () => {
    const slow = '{"backoff":{"type":"constant","delay":"13 hours"}}'
    const sqs = ["check", "--url", "sqs://eu-west-1", "--policy", slow]
    const { code, stdout } = await requeue([...sqs, "--queue", "orders.fifo", "--queue", "orders"])
    assert.strictEqual(code, 1)
    const answers = stdout.split("\n").map((line) => line.split(/ +/).slice(0, 3).join(" "))
    assert.deepStrictEqual(answers.slice(1, -1), [
      "orders.fifo handlerTimeout emulated",
      "orders.fifo retry.backoff impossible",
      "orders retry.backoff emulated",
      "orders handlerTimeout emulated"
    ])
    assert.match(stdout, /Use shorter delays, or fifoRetry: "resend"/)
  })

  it("says that SQS rounds a delay up", async () => {
    const policy = '{"backoff":{"type":"constant","delay":200}}'
    const { stdout } = await requeue(["check", "--url", "sqs://eu-west-1", "--policy", policy, "--queue", "orders"])
    assert.match(stdout, /orders +retry\.backoff +emulated +rounded up to whole seconds/)
  })

  it("refuses what create refuses, which then creates nothing", async () => {
    const args = [
      "create",
      "--url",
      "memory:",
      "--queue",
      "a",
      "--queue",
      "orders",
      "--policy",
      '{"deadLetter":"orders"}'
    ]
    const { code, stderr, stdout } = await requeue(args)
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(
      stderr,
      /retry\.deadLetter \(queue orders, broker memory\): the queue is its own dead-letter queue.*orders\.dlq/
    )
  })

  it("prints the worst lateness of delays that the broker rounds up, unless it refuses them", async () => {
    const { code, stdout } = await onLate("check", "--policy", "webhookSender")
    assert.strictEqual(code, 0)
    assert.match(stdout, /orders +retry\.backoff +emulated +late by up to 2s\n/)
    const refused = await onLate("check", "--policy", '{"deadLetter":"orders"}')
    assert.strictEqual(refused.code, 1)
  })

  it("plan prints what delays outside the policy may add before the objects", async () => {
    const { stdout } = await onLate("plan", "--offline", "--policy", "webhookSender")
    assert.match(stdout, /^queue orders .*\nobjects: 2 queues, and up to 21 queues on demand\n/)
  })

  it("prints one JSON value", async () => {
    const { stdout } = await requeue([...orders, "--json"])
    assert.deepStrictEqual(JSON.parse(stdout), {
      broker: "memory",
      requirements: [{ queue: "orders", field: "handlerTimeout", support: "exact", detail: "" }]
    })
  })
})
