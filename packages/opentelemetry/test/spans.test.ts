/** Which spans there are, whose children they are, and what they tell. */
import { SpanStatusCode, trace } from "@opentelemetry/api"
import { AlwaysOffSampler } from "@opentelemetry/sdk-trace-base"
import { connect, type ConsumeOptions, PermanentError, queue, text } from "@requeue/core/promise"
import type { Metadata } from "@requeue/core/port"
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, test } from "vitest"
import * as Recorder from "./recorder.ts"
import { open, type Stage, until } from "./stage.ts"

const parentContext = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/** Sends one message to a consumer with this handler, and answers the tree of spans once it has been settled. */
const treeOf = async (stage: Stage, handler?: () => unknown, options?: ConsumeOptions): Promise<string> => {
  await stage.consume(handler, options)
  await stage.requeue.send("orders", 1)
  await until(() => stage.recorder.spans().some(({ name }) => /^(ack|drop|dead_letter) /.test(name)))
  return stage.recorder.tree()
}

/** A span of the user's own around some work. */
const own = <A>({ recorder }: Stage, name: string, work: () => Promise<A>): Promise<A> =>
  recorder.tracerProvider.getTracer("own").startActiveSpan(name, async (span) => {
    try {
      return await work()
    } finally {
      span.end()
    }
  })

describe("spans of one message", () => {
  test("what a handler does belongs to its run, also after it has waited, and so do its sends", async () => {
    await using stage = await open()
    const tree = await treeOf(stage, async () => {
      await sleep(1)
      await own(stage, "charge", async () => {
        await sleep(1)
        await stage.requeue.send("receipts", 2)
      })
      await stage.requeue.send("mails", 3)
    })
    assert.strictEqual(
      tree,
      `send orders (producer)
  process orders (consumer) attempt=1 -> send orders
    charge (internal)
      send receipts (producer)
    send mails (producer)
    ack orders (client) attempt=1 -> send orders`
    )
    assert.strictEqual(stage.recorder.traces(), 1)
  })

  test("handlers that run side by side do not get mixed up", async () => {
    await using stage = await open()
    const ids = ["a", "b", "c", "d"]
    const { promise: all, resolve: go } = Promise.withResolvers<void>()
    await stage.consume(
      async ({ id }) => {
        if (stage.seen.length === ids.length) go()
        await all
        await own(stage, `work ${id}`, () => stage.requeue.send("receipts", 1, { id }))
      },
      { concurrency: ids.length }
    )
    for (const id of ids) await stage.requeue.send("orders", 1, { id })
    await until(() => stage.recorder.named("ack orders").length === ids.length)
    for (const id of ids) {
      const traces = stage.recorder
        .spans()
        .filter(({ attributes, name }) => attributes["messaging.message.id"] === id || name === `work ${id}`)
        .map((span) => span.spanContext().traceId)
      assert.strictEqual(traces.length, 5)
      assert.strictEqual(new Set(traces).size, 1)
    }
    assert.strictEqual(stage.recorder.traces(), ids.length)
  })

  test("a send belongs to what is active", async () => {
    await using stage = await open()
    await own(stage, "checkout", () => stage.requeue.send("orders", 1))
    assert.strictEqual(stage.recorder.tree(), "checkout (internal)\n  send orders (producer)")
  })

  test("a context that the user gives a message stays as it is", async () => {
    await using stage = await open()
    await stage.consume()
    await stage.requeue.send("orders", 1, { headers: { traceparent: parentContext, tracestate: "a=b:c" } })
    await until(() => stage.recorder.named("ack orders").length === 1)
    const [message] = stage.seen
    assert.deepStrictEqual([message?.headers["traceparent"], message?.headers["tracestate"]], [parentContext, "a=b:c"])
    const [process] = stage.recorder.named("process orders")
    assert.strictEqual(process?.parentSpanContext?.spanId, "00f067aa0ba902b7")
    assert.strictEqual(process?.spanContext().traceState?.get("a"), "b:c")
  })

  test("a handler that is run again at once has a span for each run", async () => {
    await using stage = await open()
    let runs = 0
    const tree = await treeOf(
      stage,
      () => {
        if (++runs === 1) throw new Error("no")
      },
      { retry: { immediate: 1 } }
    )
    assert.strictEqual(
      tree,
      `send orders (producer)
  process orders (consumer) attempt=1 error=Error ! -> send orders
  process orders (consumer) attempt=1 rerun=1 -> send orders
    ack orders (client) attempt=1 -> send orders`
    )
  })

  test("what no handler sees is settled in its message's trace", async () => {
    await using stage = await open()
    await stage.requeue.consume(queue("orders"), {}, () => {})
    await stage.requeue.send(queue("orders", { codec: text }), "no JSON", { headers: { "content-type": "text/plain" } })
    await until(() => stage.recorder.named("send orders.dlq").length === 1)
    assert.strictEqual(
      stage.recorder.tree(),
      `send orders (producer)
  dead_letter orders (client) attempt=1 reason=undecodable -> send orders
    send orders.dlq (client) attempt=1 reason=undecodable -> send orders`
    )
  })

  test("an error is told as the policy redacts it", async () => {
    await using stage = await open()
    await treeOf(
      stage,
      () => {
        throw new PermanentError("card of Ada")
      },
      { retry: { deadLetter: { redact: ({ name }) => ({ name, message: "***" }) } } }
    )
    const [process] = stage.recorder.named("process orders")
    assert.deepStrictEqual(process?.status, { code: SpanStatusCode.ERROR, message: "***" })
    assert.notInclude(
      JSON.stringify(stage.recorder.spans().map(({ attributes, events }) => [attributes, events])),
      "Ada"
    )
  })

  test("an exception has the type, the message and the stack trace of its error, redacted", async () => {
    await using stage = await open()
    const redact = ({ message, name, stack = "" }: Metadata.ErrorSummary) => ({
      name,
      message: message.replaceAll("Ada", "***"),
      stack: stack.replaceAll("Ada", "***")
    })
    await treeOf(
      stage,
      function chargeAda() {
        throw new PermanentError({ message: "card of Ada", cause: new TypeError("Ada has no card") })
      },
      { retry: { deadLetter: { redact } } }
    )
    const [exception] = stage.recorder.named("process orders")[0]?.events ?? []
    const { "exception.stacktrace": stacktrace, ...rest } = exception?.attributes ?? {}
    assert.strictEqual(exception?.name, "exception")
    assert.deepStrictEqual(rest, {
      "exception.type": "PermanentError",
      "exception.message": "card of ***, caused by TypeError: *** has no card"
    })
    assert.match(
      String(stacktrace),
      /^PermanentError: card of \*\*\*, caused by .*\n {4}at .*charge\*\*\* .*\n(.*\n)*caused by: TypeError: \*\*\* has no card\n {4}at /
    )
  })

  test("a span that is not sampled reads no stack", async () => {
    let reads = 0
    await using stage = await open({}, {}, Recorder.make(new AlwaysOffSampler()))
    const error = Object.defineProperty(new Error("no"), "stack", { get: () => `Error: no\n    at ${++reads}` })
    const { promise, resolve } = Promise.withResolvers<void>()
    await stage.consume(({ attempts }) => {
      if (attempts === 3) return resolve()
      throw error
    })
    await stage.requeue.send("orders", 1)
    await promise
    assert.strictEqual(reads, 1) // The first failure of each name is logged.
  })

  test("attributes have the names of the conventions, and our own of attempts", async () => {
    await using stage = await open()
    await stage.consume()
    await stage.requeue.send("orders", 1, { id: "a" })
    await until(() => stage.recorder.named("ack orders").length === 1)
    const common = {
      "messaging.system.name": "memory",
      "messaging.system": "memory",
      "messaging.destination.name": "orders",
      "messaging.message.id": "a",
      "messaging.message.body.size": 1
    }
    const [send, process, ack] = stage.recorder.spans().map(({ attributes }) => attributes)
    const operation = (name: string, type: string) => ({
      "messaging.operation.name": name,
      "messaging.operation.type": type
    })
    assert.deepStrictEqual(send, { ...common, ...operation("send", "send") })
    assert.deepStrictEqual(process, { ...common, ...operation("process", "process"), "requeue.message.attempt": 1 })
    assert.deepStrictEqual(ack, { ...common, ...operation("ack", "settle"), "requeue.message.attempt": 1 })
  })
})

describe("spans of several messages", () => {
  const entries = [
    { id: "a", body: 1 },
    { id: "b", body: 2 },
    { id: "c", body: 3 }
  ]

  test("a batch that is sent is as many traces as messages, and a send that links to each", async () => {
    await using stage = await open()
    await stage.requeue.sendBatch("orders", entries)
    assert.strictEqual(
      stage.recorder.tree(),
      `create orders (producer)
create orders (producer)
create orders (producer)
send orders (client) messages=3 -> create orders`
    )
    assert.strictEqual(stage.recorder.traces(), 4)
  })

  test("a run of several links to each, and what becomes of them the same way is one settlement", async () => {
    await using stage = await open()
    const batch = { maxBatchSize: 3, maxBatchTimeout: "1 minute" } as const
    await stage.requeue.consumeBatch("orders", { batch }, ({ messages }) => {
      messages[1]!.retry({ delay: "1 hour" })
    })
    await stage.requeue.sendBatch("orders", entries)
    await until(() => stage.recorder.named("ack orders").length === 1)
    const tree = stage.recorder.tree().split("\n").slice(4).join("\n")
    assert.strictEqual(
      tree,
      `process orders (consumer) messages=3 -> create orders
  retry orders (client) attempt=1 delay=3600 -> create orders
  ack orders (client) messages=2 -> create orders`
    )
    const [process] = stage.recorder.named("process orders")
    const created = stage.recorder.named("create orders").map((span) => span.spanContext().spanId)
    assert.deepStrictEqual(
      process?.links.map(({ context }) => context.spanId),
      created
    )
    assert.deepStrictEqual(
      process?.links.map(({ attributes }) => attributes?.["messaging.message.id"]),
      ["a", "b", "c"]
    )
  })
})

describe("what fails", () => {
  test("a send that is not confirmed tells why", async () => {
    await using stage = await open({ faults: { duplicateOnLostConfirmation: 1 } })
    await stage.requeue.send("orders", 1).catch(() => {})
    assert.strictEqual(stage.recorder.tree(), "send orders (producer) error=Timeout !")
  })

  test("a settlement that the broker does not take tells why, and is no failure of the handler", async () => {
    await using stage = await open({ faults: { failSettle: { every: 1, reason: "LeaseLost" } } })
    await stage.consume()
    await stage.requeue.send("orders", 1)
    await until(() => stage.recorder.named("ack orders").length > 0)
    const [process] = stage.recorder.named("process orders")
    const [ack] = stage.recorder.named("ack orders")
    assert.strictEqual(process?.status.code, SpanStatusCode.UNSET)
    assert.deepStrictEqual([ack?.status.code, ack?.attributes["error.type"]], [SpanStatusCode.ERROR, "LeaseLost"])
  })

  test("a handler that a shutdown interrupts has not failed", async () => {
    const stage = await open()
    await stage.consume(() => new Promise(() => {}))
    await stage.requeue.send("orders", 1)
    await until(() => stage.seen.length === 1)
    await stage.requeue.close(0)
    const [process] = stage.recorder.named("process orders")
    assert.strictEqual(process?.status.code, SpanStatusCode.UNSET)
    assert.strictEqual(stage.recorder.named("release orders").length, 1)
  })
})

test("nothing that is not asked for: without telemetry no header is added, and no span is active", async () => {
  await using requeue = await connect("memory:")
  const seen: Array<unknown> = []
  await requeue.consume("orders", {}, ({ headers }) => {
    seen.push(headers, trace.getActiveSpan())
  })
  await requeue.send("orders", 1)
  await until(() => seen.length > 0)
  assert.deepStrictEqual(seen, [{ "content-type": "application/json" }, undefined])
})
