import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as DeadLetterRouting from "../../src/policy/DeadLetterRouting.ts"
import * as StackTrace from "../../src/policy/StackTrace.ts"
import * as Failure from "../../src/policy/Failure.ts"

/** An error with this stack, below the line that an engine writes above it. */
const thrown = (message: string, frames: ReadonlyArray<string>, more: object = {}): Error =>
  Object.assign(new Error(message), {
    stack: [`Error: ${message}`, ...frames.map((frame) => `    at ${frame}`)].join("\n"),
    ...more
  })

const textOf = (error: unknown): string | undefined => StackTrace.render(StackTrace.of(error)())
const linesOf = (error: unknown): ReadonlyArray<string> => (textOf(error) ?? "").split("\n").map((line) => line.trim())

const handle = "handle (/app/orders.ts:1:2)"

const throwing = new Proxy(new Error("no"), {
  get: () => {
    throw new Error("hands off")
  },
  getPrototypeOf: () => {
    throw new Error("hands off")
  }
})

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe("the stack trace of an error", () => {
  it("has the place where it was thrown first, without the message above it", () => {
    const placeOrder = () => new TypeError("no\nid")
    const [first] = linesOf(placeOrder())
    assert.match(first!, /^at placeOrder \(.*StackTrace\.test\.ts/)
  })

  it("has every cause, each with its own frames", () => {
    const socket = thrown("connect ECONNREFUSED", ["connect (/app/db.ts:3:4)"])
    const query = thrown("no\n  rows", ["query (/app/db.ts:1:2)"], { cause: socket })
    assert.deepStrictEqual(linesOf(thrown("failed", [handle], { cause: query })), [
      `at ${handle}`,
      "caused by: Error: no rows",
      "at query (/app/db.ts:1:2)",
      "caused by: Error: connect ECONNREFUSED",
      "at connect (/app/db.ts:3:4)"
    ])
  })

  it("has the errors of an AggregateError, and their causes", () => {
    const errors = [thrown("a", ["a (/app/a.ts:1:1)"], { cause: "timeout" }), "no error", thrown("b", [])]
    const aggregate = Object.assign(new AggregateError(errors, "all failed"), {
      stack: `AggregateError: all failed\n    at ${handle}`
    })
    assert.deepStrictEqual(linesOf(aggregate), [
      `at ${handle}`,
      "error 1 of 3: Error: a",
      "at a (/app/a.ts:1:1)",
      "error 1 of 3, caused by: NonError(string): timeout",
      "error 3 of 3: Error: b"
    ])
  })

  it.each([
    [
      "Node",
      ["listOnTimeout (node:internal/timers:581:17)", "process.processTicksAndRejections (node:internal/x:1:1)"]
    ],
    ["the library", ["a (file:///app/node_modules/@requeue/core/dist/internal/chunk.js:1:1)"]],
    ["the library below pnpm", ["a (/app/node_modules/.pnpm/x/node_modules/@requeue/core/dist/a.js:1:1)"]],
    ["Effect", ["FiberImpl.evaluate (C:\\app\\node_modules\\effect\\dist\\fiber.js:1:1)", "new Promise (<anonymous>)"]],
    ["the engine", ["requeueCallsHandler (/anywhere/bundle.js:1:1)", "others (/anywhere/bundle.js:2:2)"]]
  ])("ends before the frames of %s", (_, frames) => {
    assert.deepStrictEqual(linesOf(thrown("no", [handle, ...frames])), [`at ${handle}`])
    assert.strictEqual(textOf(thrown("no", frames)), undefined)
  })

  it("keeps such frames where the program has called them", () => {
    const read = "readFileSync (node:fs:441:20)"
    assert.deepStrictEqual(linesOf(thrown("no", [read, handle])), [`at ${read}`, `at ${handle}`])
  })

  it("finds the frames of an error whose name and message were changed, and of one without a message", () => {
    for (const message of ["changed", "", handle, "b", "bef", "r"]) {
      assert.deepStrictEqual(linesOf(Object.assign(thrown("before", [handle]), { message })), [`at ${handle}`])
    }
  })

  it("has the whole stack of an error that another program wrote", () => {
    const remote = Object.assign(new Error("no"), { stack: "Traceback:\n  File x.py, line 3" })
    assert.deepStrictEqual(linesOf(remote), ["Traceback:", "File x.py, line 3"])
  })

  it.each([
    ["a stack that is no text", Object.assign(new Error("no"), { stack: [{}] })],
    ["no stack", Object.assign(new Error("no"), { stack: undefined })],
    ["a stack without frames", Object.assign(new Error("no"), { stack: "Error: no" })],
    ["a text", "no"],
    ["nothing", undefined],
    ["a proxy that throws", throwing],
    ["a revoked proxy", revoked()]
  ])("is none for %s", (_, error) => {
    assert.strictEqual(textOf(error), undefined)
  })

  it("survives hostile causes", () => {
    const getter = Object.defineProperty(thrown("no", [handle]), "cause", {
      get: () => {
        throw new Error("hands off")
      }
    })
    assert.deepStrictEqual(linesOf(getter), [`at ${handle}`])
    const cyclic = thrown("no", [handle])
    assert.deepStrictEqual(linesOf(Object.assign(cyclic, { cause: cyclic })), [`at ${handle}`])
    const hole = Object.defineProperty([1], 0, {
      get: () => {
        throw new Error("hands off")
      }
    })
    const sparse: Array<unknown> = []
    sparse.length = 1e9
    for (const errors of [revoked(), throwing, hole, sparse, { length: 1e9 }, "text"]) {
      assert.deepStrictEqual(linesOf(Object.assign(thrown("no", [handle]), { errors })), [`at ${handle}`])
    }
    const large = thrown("no", [handle], { cause: { rows: Array.from({ length: 1e5 }, (_, n) => n) } })
    assert.deepStrictEqual(linesOf(large), [`at ${handle}`, "caused by: NonError(object)"])
  })

  it("is bounded in errors, frames, lines and characters", () => {
    const chained = (message: string, frame: string): Error => {
      let chain: Error = thrown("last", [handle])
      for (let n = 0; n < 1000; n++) chain = thrown(message, [frame], { cause: chain })
      return chain
    }
    const causes = linesOf(chained("no", handle)).filter((line) => line.startsWith("caused by: "))
    assert.strictEqual(causes.length, 9)
    const long = linesOf(chained("x".repeat(1000), handle.repeat(50)))
    assert.isTrue(long.every((line) => line.length <= 256))
    const deep = thrown(
      "no",
      Array.from({ length: 1000 }, () => handle)
    )
    assert.strictEqual(linesOf(deep).length, 20)
    const wide = new AggregateError(
      Array.from({ length: 1000 }, () =>
        thrown(
          "no",
          Array.from({ length: 50 }, () => handle)
        )
      )
    )
    assert.isAtMost(textOf(wide)!.length, StackTrace.limit)
    assert.include(textOf(wide), "error 9 of 1000: Error: no")
  })

  it.each(["a", " ", "\n", "    at ", "\n    at x\n"])("reads a stack of 20 million characters at once: %j", (text) => {
    const huge = text.repeat(2e7 / text.length)
    for (const message of ["no", huge]) {
      const error = Object.assign(new Error(message), { stack: huge })
      assert.isAtMost((textOf(error) ?? "").length, StackTrace.limit)
    }
  })

  it("is bounded, whatever was thrown", () => {
    const stack = fc.oneof(fc.string({ unit: "binary", maxLength: 5000 }), fc.anything())
    const error = fc.letrec<{ error: object }>((tie) => ({
      error: fc.record(
        {
          message: fc.anything(),
          stack,
          cause: fc.oneof({ maxDepth: 5 }, fc.anything(), tie("error")),
          errors: fc.oneof({ maxDepth: 3 }, fc.anything(), fc.array(tie("error"), { maxLength: 3 }))
        },
        { requiredKeys: [] }
      )
    })).error
    fc.assert(
      fc.property(error, (properties) => {
        assert.isAtMost((textOf(Object.assign(new Error("no"), properties)) ?? "").length, StackTrace.limit)
      }),
      { numRuns: 300 }
    )
  })

  it("is read once, and only when it is asked for", () => {
    let reads = 0
    const error = Object.defineProperty(new Error("no"), "stack", { get: () => `Error: no\n    at read ${++reads}` })
    const { summary } = Failure.make(error, 0, StackTrace.of(error))
    assert.strictEqual(reads, 0)
    assert.deepStrictEqual([summary.stack, summary.stack, { ...summary }.stack], Array(3).fill("    at read 1"))
    assert.isFalse("stack" in Failure.make(error, 0).summary)
  })
})

describe("redact", () => {
  const error = thrown("refused secret", ["secret (/app/a.ts:1:1)"], {
    cause: thrown("denied secret", ["secret (/app/b.ts:1:1)"])
  })
  const told = (redact?: DeadLetterRouting.Redact) =>
    DeadLetterRouting.redacted(DeadLetterRouting.make({ redact }), Failure.make(error, 0, StackTrace.of(error)))
  const hidden = (text: string) => text.replaceAll("secret", "…")

  it("may write into the error that it is given", () => {
    const { message, stack } = told((given) =>
      Object.assign(given, { message: hidden(given.message), stack: undefined })
    )
    assert.deepStrictEqual([message, stack], ["refused …, caused by denied …", "caused by: Error: denied …"])
  })

  it("sees the error and each of its causes, with their own frames, and of a cause its message before", () => {
    const seen: Array<unknown> = []
    const { message, stack } = told(({ message, name, stack = "" }) => {
      seen.push([message, stack.trim()])
      return { name, message: hidden(message), stack: hidden(stack) }
    })
    assert.strictEqual(message, "refused …, caused by denied …")
    assert.deepStrictEqual(stack?.split("\n"), [
      "    at … (/app/a.ts:1:1)",
      "caused by: Error: denied …",
      "    at … (/app/b.ts:1:1)"
    ])
    assert.deepStrictEqual(seen, [
      ["refused secret", "at secret (/app/a.ts:1:1)"],
      ["denied secret", ""],
      ["denied secret", "at secret (/app/b.ts:1:1)"]
    ])
  })

  it("also hides the messages of causes where it only knows messages, and then no frames are kept", () => {
    const { stack } = told(({ message, name }) => ({ name, message: hidden(message) }))
    assert.strictEqual(stack, "caused by: Error: denied …")
    const spread = told((each) => ({ ...each, message: hidden(each.message) }))
    assert.include(spread.stack, "caused by: Error: denied …")
  })

  it("hides the messages of causes without stack traces as well", () => {
    const redact: DeadLetterRouting.Redact = ({ message, name }) => ({ name, message: hidden(message) })
    const answer = DeadLetterRouting.redacted(DeadLetterRouting.make({ redact }), Failure.make(error, 0))
    assert.deepStrictEqual(answer, { name: "Error", message: "refused …, caused by denied …" })
  })

  it("leaves no text where it fails", () => {
    const { message, stack } = told(() => {
      throw new Error("no")
    })
    assert.strictEqual(message, "(withheld: redact failed)")
    assert.strictEqual(stack, "caused by: Error: (withheld: redact failed)")
  })

  it("may be left out", () => {
    assert.include(told().stack, "at secret (/app/a.ts:1:1)")
  })
})
