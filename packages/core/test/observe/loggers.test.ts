/** Which method of a logger is called, and how, by what the logger has. */
import { Console } from "node:console"
import { Writable } from "node:stream"
import { format } from "node:util"
import { assert, describe, it, vi } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Loggers from "../../src/observe/internal/loggers.ts"
import type { LogTarget } from "../../src/observe/LoggerLike.ts"

const log = (target: LogTarget | undefined, effect: Effect.Effect<void>) =>
  Effect.runSync(
    effect.pipe(
      Effect.provideService(References.CurrentLoggers, Loggers.of(target)),
      Effect.provideService(References.MinimumLogLevel, "All")
    )
  )

/** A logger with these methods, and its calls. */
const recording = (...names: ReadonlyArray<string>) => {
  const calls: Array<ReadonlyArray<unknown>> = []
  const methods = Object.fromEntries(
    names.map((name) => [
      name,
      (...args: ReadonlyArray<unknown>) => {
        calls.push([name, ...args])
        return name === "child" ? logger : undefined
      }
    ])
  )
  const logger: any = methods // It stands for loggers of any library.
  return { calls, logger }
}

const levels = Effect.all(
  [Effect.logTrace, Effect.logDebug, Effect.logInfo, Effect.logWarning, Effect.logError, Effect.logFatal].map((write) =>
    write("m")
  ),
  { discard: true }
)

describe("a line is written", () => {
  it.each([
    ["pino", ["trace", "debug", "info", "warn", "error", "fatal", "child"], "trace debug info warn error fatal"],
    ["winston, npm", ["silly", "debug", "info", "warn", "error", "child", "log"], "silly debug info warn error error"],
    [
      "winston, syslog",
      ["debug", "info", "warning", "error", "crit", "child", "log"],
      "debug debug info warning error crit"
    ],
    ["console", ["trace", "debug", "info", "warn", "error", "log"], "debug debug info warn error error"],
    ["Nest", ["debug", "log", "warn", "error", "fatal", "verbose"], "debug debug log warn error fatal"],
    ["the least that there is", ["info", "warn", "error"], "info warn error error"]
  ])("by its level in %s", (_, names, expected) => {
    const { calls, logger } = recording(...names)
    log(logger, levels)
    const isWinston = names.includes("child") && names.includes("log")
    const called = calls.map(([name, entry]) => (isWinston ? Object(entry).level : name))
    assert.strictEqual(called.join(" "), expected)
  })

  it("with fields first, last, or as one entry", () => {
    const line = Effect.annotateLogs(Effect.logWarning("100% of", "all"), { queue: "q", count: 2 })
    const all = ["info", "warn", "error"]
    for (const [names, expected] of [
      [
        [...all, "child"],
        [
          ["child", { queue: "q" }],
          ["warn", { count: 2 }, "100% of all"]
        ]
      ],
      [
        [...all, "child", "log"],
        [
          ["child", { queue: "q" }],
          ["log", { count: 2, level: "warn", message: "100% of all" }]
        ]
      ],
      [all, [["warn", "100% of all", { queue: "q", count: 2 }]]]
    ] as const) {
      const { calls, logger } = recording(...names)
      log(logger, line)
      assert.deepStrictEqual<unknown>(calls, expected)
    }
  })

  it("as it is by console, which takes it for a format", () => {
    const written: Array<string> = []
    const stream = new Writable({ write: (chunk, _, done) => (written.push(String(chunk)), done()) })
    const fields = Effect.annotateLogs({ count: 2 })
    const line = Effect.all([fields(Effect.logWarning("100%s of %")), fields(Effect.logInfo("50%d %%"))], {
      discard: true
    })
    log(new Console({ stdout: stream, stderr: stream }), line)
    assert.deepStrictEqual(written, ["100%s of % { count: 2 }\n", "50%d %% { count: 2 }\n"])
    const shown = vi.spyOn(console, "warn").mockImplementation((...args) => void written.push(format(...args)))
    log(console, fields(Effect.logWarning("100%s")))
    shown.mockRestore()
    assert.strictEqual(written.at(-1), "100%s { count: 2 }")
  })

  it.each([undefined, "json"] as const)(
    "on standard error without characters that would break or forge it: %s",
    (target) => {
      const written: Array<string> = []
      const shown = vi.spyOn(console, "error").mockImplementation((line) => void written.push(String(line)))
      log(
        target,
        Effect.annotateLogs(Effect.logWarning("a\u001b[2Jb\u0085c\u2028d\u2029e\u009bf\u007fg\nh"), {
          queue: "q\u009d"
        })
      )
      shown.mockRestore()
      const [line = ""] = written
      assert.notMatch(line, /[\p{Cc}\p{Zl}\p{Zp}]/u)
      assert.include(line, "\\u001b[2Jb\\u0085c\\u2028d\\u2029e\\u009bf\\u007fg\\nh")
      assert.include(line, "q\\u009d")
    }
  )

  it.each([
    ["a promise", async () => ({})],
    ["a logger of one level", () => ({ info: () => {} })],
    ["nothing", () => undefined]
  ])("by the logger itself, where its child is %s", (_, child) => {
    const { calls, logger } = recording("info", "warn", "error")
    log({ ...logger, child }, Effect.annotateLogs(Effect.logWarning("m"), { queue: "q" }))
    assert.deepStrictEqual(calls, [["warn", { queue: "q" }, "m"]])
  })

  it("by one child of each queue", () => {
    const { calls, logger } = recording("info", "warn", "error", "child")
    const lines = ["a", "b", "a"].map((queue) => Effect.annotateLogs(Effect.logWarning("m"), { queue }))
    log(logger, Effect.all([...lines, Effect.logWarning("m")], { discard: true }))
    assert.deepStrictEqual(
      calls.filter(([name]) => name === "child"),
      [
        ["child", { queue: "a" }],
        ["child", { queue: "b" }]
      ]
    )
    assert.lengthOf(calls, 6)
  })

  it("with the error that caused it", () => {
    const { calls, logger } = recording("info", "warn", "error")
    log(logger, Effect.logError("a request failed", Cause.die(new TypeError("no price"))))
    const [[, , fields] = []] = calls
    const { errorStack, ...others } = Object(fields)
    assert.deepStrictEqual(others, { errorName: "TypeError", errorMessage: "no price" })
    assert.match(errorStack, /TypeError: no price\n\s+at /)
  })
})
