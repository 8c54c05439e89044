/** The log of programs without Effect, in loggers that they have: the fields, and that none of them harms a message. */
import { assert, describe, it, vi } from "@effect/vitest"
import type { ConnectOptions } from "@requeue/core/promise"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { Console } from "node:console"
import { Writable } from "node:stream"
import { pino } from "pino"
import * as winston from "winston"
import * as Virtual from "./virtualBroker.ts"

type Line = Readonly<Record<string, unknown>>

/** A stream, and what was written to it. */
const written = () => {
  let text = ""
  const stream = new Writable({
    write: (chunk, _, done) => {
      text += String(chunk)
      done()
    }
  })
  return { stream, text: () => text, lines: () => text.split("\n").filter((line) => line !== "") }
}

/** Runs with what is printed on standard error in the place of it. */
const onStandardError = async (run: () => Promise<unknown>): Promise<ReadonlyArray<string>> => {
  const printed = vi.spyOn(console, "error").mockImplementation(() => {})
  try {
    await run()
    return printed.mock.calls.map(([line]) => String(line))
  } finally {
    printed.mockRestore()
  }
}

/** A program whose handler fails twice for each of two queues; returns the ids of what it gave up. */
const run = async (logger: ConnectOptions["logger"], logLevel?: ConnectOptions["logLevel"]) => {
  const deadLetters: Array<string> = []
  {
    await using broker = await Virtual.open({}, undefined, logLevel, { logger })
    for (const queue of ["orders", "invoices"]) {
      const onEvent = (event: { readonly _tag: string; readonly id?: string }) => {
        if (event._tag === "DeadLettered") deadLetters.push(`${queue} ${event.id}`)
      }
      await broker.finish(
        broker.requeue.consume(queue, { retry: { maxRetries: 1 }, onEvent, stackTraces: false }, ({ body }) => {
          throw new TypeError(`no price for order ${String(body)}`)
        })
      )
      await broker.finish(broker.requeue.send(queue, 7))
    }
    await broker.advance("1 second")
  }
  assert.lengthOf(deadLetters, 2)
  return deadLetters.map((each) => each.split(" ")[1])
}

/** The fields of the first failure of a queue. */
const failure = (messageId: string | undefined, consumer: number) => ({
  broker: "memory",
  consumer,
  messageId,
  attempts: 1,
  count: 1,
  pattern: "no price for order <num>",
  errorName: "TypeError",
  errorMessage: "no price for order 7"
})

const firstFailures = "a handler failed"

const parsed = (lines: ReadonlyArray<string>): ReadonlyArray<Line> => lines.map((line): Line => JSON.parse(line))

describe("pino", () => {
  it("gets the fields, by one child per queue", async () => {
    const { lines, stream } = written()
    const logger = pino({ base: null, timestamp: false }, stream)
    const child = vi.spyOn(logger, "child")
    const [orders, invoices] = await run(logger)
    const failures = parsed(lines()).filter(({ msg }) => msg === firstFailures)
    assert.deepStrictEqual(failures, [
      { level: 40, queue: "orders", ...failure(orders, 1), msg: firstFailures },
      { level: 40, queue: "invoices", ...failure(invoices, 2), msg: firstFailures }
    ])
    assert.deepStrictEqual(
      child.mock.calls.map(([bindings]) => bindings),
      [{ queue: "orders" }, { queue: "invoices" }]
    )
    // Pino writes a field twice that the child and the line have.
    for (const line of lines()) assert.lengthOf(line.match(/"queue":/g) ?? [], 1)
  })

  it("decides on the level, from info on", async () => {
    for (const [level, messages] of [
      ["info", ["consuming", firstFailures, "dead-lettered a message", "a handler failed again"]],
      ["error", []]
    ] as const) {
      const { lines, stream } = written()
      await run(pino({ level }, stream))
      assert.sameMembers([...new Set(parsed(lines()).map(({ msg }) => msg))], [...messages])
    }
  })
})

describe("winston", () => {
  const program = async (levels: winston.config.AbstractConfigSetLevels) => {
    const { lines, stream } = written()
    const logger = winston.createLogger({
      levels,
      format: winston.format.combine(winston.format.splat(), winston.format.json()),
      transports: new winston.transports.Stream({ stream, level: "info" })
    })
    const child = vi.spyOn(logger, "child")
    const [orders] = await run(logger)
    assert.lengthOf(child.mock.calls, 2)
    const [first] = parsed(lines()).filter(({ message }) => message === firstFailures)
    return { first, orders }
  }

  it.each([
    ["npm", winston.config.npm.levels, "warn"],
    ["syslog", winston.config.syslog.levels, "warning"]
  ])("with the levels of %s gets the fields, by one child per queue", async (_, levels, level) => {
    const { first, orders } = await program(levels)
    assert.deepStrictEqual(first, { level, message: firstFailures, queue: "orders", ...failure(orders, 1) })
  })
})

it("console gets the message, and the fields as an object", async () => {
  const { stream, text } = written()
  await run(new Console({ stdout: stream, stderr: stream }))
  assert.match(text(), /^consuming \{\n/)
  assert.match(text(), /\na handler failed \{\n[^}]*queue: 'orders',[^}]*errorName: 'TypeError'/)
})

it("a logger of Effect gets what it gets from Effect", async () => {
  const lines: Array<Line> = []
  const logger = Logger.make<unknown, void>(({ fiber, message }) => {
    const fields = fiber.getRef(References.CurrentLogAnnotations)
    if (String(message) === firstFailures) lines.push(fields)
  })
  const [orders, invoices] = await run(logger)
  assert.deepStrictEqual(lines, [
    { queue: "orders", ...failure(orders, 1) },
    { queue: "invoices", ...failure(invoices, 2) }
  ])
})

describe("on standard error", () => {
  it('"json" is one JSON object per line, with the same fields', async () => {
    let ids: ReadonlyArray<string | undefined> = []
    const printed = await onStandardError(async () => (ids = await run("json", "Warn")))
    const [first] = parsed(printed)
    assert.deepStrictEqual(first, {
      timestamp: "1970-01-01T00:00:00.000Z",
      level: "warn",
      message: firstFailures,
      queue: "orders",
      ...failure(ids[0], 1)
    })
    assert.deepStrictEqual(Object.keys(first!).slice(0, 3), ["timestamp", "level", "message"])
  })

  it("there is no line with false, and key=value pairs without a logger", async () => {
    assert.deepStrictEqual(await onStandardError(() => run(false, "All")), [])
    const [line] = await onStandardError(() => run(undefined, "Warn"))
    assert.match(line!, /^timestamp=\S+ level=WARN fiber=#\d+ message="a handler failed" /)
    assert.match(line!, / broker=memory queue=orders consumer=1 messageId=\S+ attempts=1 count=1 /)
  })
})

describe("a logger that fails", () => {
  const fails = (): never => {
    throw new Error("the disk is full")
  }
  const rejects = () => Promise.reject(new Error("the disk is full"))
  const all = (method: () => unknown) => ({ info: method, warn: method, error: method, debug: method })

  it.each<[string, ConnectOptions["logger"]]>([
    ["throws", all(fails)],
    ["rejects", all(rejects)],
    ["throws when it makes a child", { ...all(() => {}), child: fails }],
    ["makes a child that throws", { ...all(() => {}), child: () => all(fails) }],
    [
      "is of winston's kind and throws",
      { ...all(fails), child: () => ({ ...all(fails), log: fails, child: fails }), log: fails }
    ],
    ["is of Effect and throws", Logger.make(fails)],
    ["is of Effect and rejects", Logger.make(rejects)]
  ])("that %s harms no message, and its first error is a line on standard error", async (_, logger) => {
    const printed = await onStandardError(() => run(logger))
    assert.lengthOf(printed, 1)
    assert.match(printed[0]!, /level=ERROR .*the logger of connect failed with \w+: .*not shown\. The line was:/)
  })
})
