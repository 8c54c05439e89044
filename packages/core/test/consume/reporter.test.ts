import { assert, describe, it } from "@effect/vitest"
import * as Failure from "../../src/policy/Failure.ts"
import * as StackTrace from "../../src/policy/StackTrace.ts"
import * as Reporter from "../../src/consume/internal/reporter.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"
import * as Promises from "../promises.ts"

const start = () => {
  const lines: Array<string> = []
  const reporter = Reporter.make({
    queue: "q",
    hook: undefined,
    warn: (message, { error }) => lines.push(`${message.split(";")[0]}: ${String(error)}`),
    redact: ({ summary: { message, name, stack } }) => ({ name, message: message.replace("secret", "***"), stack }),
    wallClock: () => 0
  })
  return { lines, fail: (error: unknown) => reporter.failed(delivery("a"), Failure.make(error, 0), false) }
}

describe("a message that is given up", () => {
  const lines: Array<unknown> = []
  const reporter = Reporter.make({
    queue: "orders",
    hook: undefined,
    warn: (message, annotations) => lines.push([message, annotations]),
    redact: ({ summary }) => summary,
    wallClock: () => 100_000
  })
  const late = delivery("a", { attempts: 4, metadata: Metadata.make("a", 10_000) })
  const error = { name: "Error", message: "no" }

  it.each([
    [Settlement.DeadLetter("retries-exhausted", "orders.dlq", error), { target: "orders.dlq" }],
    [Settlement.Drop("permanent", error), {}]
  ] as const)("is logged with all that is known of it: %o", (settlement, more) => {
    lines.length = 0
    reporter.settled(late, settlement)
    const { reason } = settlement as Extract<typeof settlement, { reason: unknown }>
    const known = { queue: "orders", id: "a", attempts: 4, reason, error: "Error: no", age: "1m 30s", ...more }
    assert.deepStrictEqual(lines, [["gave up a message", known]])
    const traced = { ...settlement, error: { ...error, stack: "    at handle" } }
    reporter.settled(late, traced)
    assert.deepStrictEqual(lines[1], ["gave up a message", { ...known, stack: "    at handle" }])
  })

  it("is not one that is acked, retried or given back", () => {
    lines.length = 0
    for (const settlement of [Settlement.Ack, Settlement.Retry(1), Settlement.Release()]) {
      reporter.settled(late, settlement)
    }
    assert.deepStrictEqual(lines, [])
  })
})

it("says once that what a handler acked goes back behind another one of its group", () => {
  const lines: Array<unknown> = []
  const reporter = Reporter.make({
    queue: "q",
    hook: undefined,
    warn: (message, annotations) => lines.push([message.split(":")[0], annotations]),
    redact: ({ summary }) => summary,
    wallClock: () => 0
  })
  for (const id of ["a", "b"]) reporter.heldBack(delivery(id, { group: "g" }))
  assert.deepStrictEqual(lines, [["did not ack a message", { queue: "q", id: "a", attempts: 1, group: "g" }]])
})

describe("a handler that fails", () => {
  it("is logged once for each name of error, redacted, also without a hook", () => {
    const { fail, lines } = start()
    fail(new Error("the secret"))
    fail(new Error("again"))
    fail(new TypeError("other"))
    assert.deepStrictEqual(lines, ["a handler failed: Error: the ***", "a handler failed: TypeError: other"])
  })

  it("is logged with its stack trace", () => {
    const logged: Array<unknown> = []
    const reporter = Reporter.make({
      queue: "q",
      hook: undefined,
      warn: (_, { stack }) => logged.push(stack),
      redact: ({ summary }) => summary,
      wallClock: () => 0
    })
    const error = new TypeError("no")
    reporter.failed(delivery("a"), Failure.make(error, 0, StackTrace.of(error)), false)
    assert.match(String(logged[0]), /^ {4}at .*reporter\.test\.ts/)
  })

  it("does not fill the memory with names", () => {
    const { fail, lines } = start()
    for (let n = 0; n < 1000; n++) fail(Object.assign(new Error("x"), { name: `Error${n}` }))
    assert.strictEqual(lines.length, 100)
  })
})

it.each(Promises.foreign)("a hook's promise %s may be rejected: that is logged once", async (_, make) => {
  const lines: Array<string> = []
  const hook: () => any = () => make(Promise.reject(new Error("the audit log is down"))) // It answers nothing, by the types.
  const reporter = Reporter.make({
    queue: "q",
    hook,
    warn: (message) => lines.push(message),
    redact: ({ summary }) => summary,
    wallClock: () => 0
  })
  reporter.received(delivery("a"))
  await new Promise((resolve) => setImmediate(resolve))
  assert.lengthOf(lines, 1)
})

it("calls a hook that throws by the name of its option", () => {
  const lines: Array<unknown> = []
  const reporter = Reporter.make({
    queue: "q",
    hook: () => {
      throw new Error("full")
    },
    warn: (message, annotations) => lines.push([message, annotations]),
    redact: ({ summary }) => summary,
    wallClock: () => 0
  })
  reporter.settled(delivery("a"), Settlement.Ack)
  assert.deepStrictEqual(lines, [["onEvent threw", { queue: "q", event: "Succeeded", error: "Error: full" }]])
})
