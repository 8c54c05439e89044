import { assert, describe, it } from "@effect/vitest"
import * as BackoffState from "../../src/policy/BackoffState.ts"
import * as Failure from "../../src/policy/Failure.ts"
import * as Reporter from "../../src/observe/Reporter.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"
import * as Promises from "../promises.ts"

const infos: Array<unknown> = []

/** No test here lets a handler fail. */
const noTimers = { now: () => 0, after: () => ({ run: undefined, waits: false }), cancel: () => {} }

describe("a message that is given up", () => {
  const lines: Array<unknown> = []
  const reporter = Reporter.make({
    queue: "orders",
    hook: undefined,
    info: (message, annotations) => infos.push([message, annotations]),
    warn: (message, annotations) => lines.push([message, annotations]),
    redact: ({ summary }) => summary,
    timers: noTimers,
    wallClock: () => 100_000
  })
  const late = delivery("a", { attempts: 4, metadata: Metadata.make("a", 10_000) })
  const error = { name: "Error", message: "no" }

  it.each([
    [
      "dead-lettered a message",
      Settlement.DeadLetter("retries-exhausted", "orders.dlq", error),
      { target: "orders.dlq" }
    ],
    ["dropped a message", Settlement.Drop("permanent", error), {}]
  ] as const)("is logged with its details: %s", (line, settlement, more) => {
    lines.length = 0
    reporter.settled(late, settlement)
    const { reason } = settlement as Extract<typeof settlement, { reason: unknown }>
    const subject = { queue: "orders", messageId: "a", attempts: 4 }
    const fields = { ...subject, reason, errorName: "Error", errorMessage: "no", age: "1m 30s", ...more }
    assert.deepStrictEqual(lines, [[line, fields]])
    const traced = { ...settlement, error: { ...error, stack: "    at handle" } }
    reporter.settled(late, traced)
    assert.deepStrictEqual(lines[1], [line, { ...fields, errorStack: "    at handle" }])
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
    info: (message, annotations) => infos.push([message, annotations]),
    warn: (message, annotations) => lines.push([message.split(":")[0], annotations]),
    redact: ({ summary }) => summary,
    timers: noTimers,
    wallClock: () => 0
  })
  for (const id of ["a", "b"]) reporter.heldBack(delivery(id, { group: "g" }))
  assert.deepStrictEqual(lines, [["did not ack a message", { queue: "q", messageId: "a", attempts: 1, group: "g" }]])
})

it.each(Promises.foreign)("a hook's promise %s may be rejected: that is logged once", async (_, make) => {
  const lines: Array<string> = []
  const hook: () => any = () => make(Promise.reject(new Error("the audit log is down"))) // It answers nothing, by the types.
  const reporter = Reporter.make({
    queue: "q",
    hook,
    info: (message, annotations) => infos.push([message, annotations]),
    warn: (message) => lines.push(message),
    redact: ({ summary }) => summary,
    timers: noTimers,
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
    info: (message, annotations) => infos.push([message, annotations]),
    warn: (message, annotations) => lines.push([message, annotations]),
    redact: ({ summary }) => summary,
    timers: noTimers,
    wallClock: () => 0
  })
  reporter.settled(delivery("a"), Settlement.Ack)
  assert.deepStrictEqual(lines, [
    ["onEvent threw", { queue: "q", event: "Succeeded", errorName: "Error", errorMessage: "full" }]
  ])
})

it("what the log says of a thrown value and of a hook's error is redacted", () => {
  const lines: Array<unknown> = []
  const reporter = Reporter.make({
    queue: "q",
    hook: () => {
      throw new Error("card 4711")
    },
    info: (message, annotations) => infos.push([message, annotations]),
    warn: (message, { errorMessage }) => lines.push([message, errorMessage]),
    redact: ({ summary: { message, name } }) => ({ name, message: message.replaceAll("4711", "*") }),
    timers: noTimers,
    wallClock: () => 0
  })
  reporter.failed(delivery("a"), Failure.make({ permanent: "card 4711" }, 0), false)
  assert.lengthOf(lines, 3)
  assert.notInclude(JSON.stringify(lines), "4711")
})

describe("a consumer backoff", () => {
  it("logs its end", () => {
    const reporter = Reporter.make({
      queue: "orders",
      hook: undefined,
      info: (message, annotations) => infos.push([message, annotations]),
      warn: () => {},
      redact: ({ summary }) => summary,
      timers: noTimers,
      wallClock: () => 0
    })
    infos.length = 0
    const probing: BackoffState.State = { ...BackoffState.initial, mode: { _tag: "Probing", probe: undefined } }
    reporter.backoff("handler", probing, BackoffState.initial)
    reporter.backoff("handler", BackoffState.initial, BackoffState.initial)
    assert.deepStrictEqual(infos, [["consumer backoff: over", { queue: "orders", because: "handler" }]])
  })
})
