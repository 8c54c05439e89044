import { assert, describe, it, vi } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as fc from "fast-check"
import * as Loggers from "../../src/observe/internal/loggers.ts"

const logger = [...Loggers.of(undefined)][0]!

const linesOf = (effect: Effect.Effect<void>, ...loggers: ReadonlyArray<Logger.Logger<unknown, void>>) => {
  const lines: Array<string> = []
  const heard = vi.spyOn(console, "error").mockImplementation((line: string) => void lines.push(line))
  try {
    Effect.runSync(Effect.provideService(effect, References.CurrentLoggers, new Set(loggers)))
  } finally {
    heard.mockRestore()
  }
  return lines
}

const text = fc.oneof(fc.string(), fc.constantFrom("plain", "two words", 'a "quote"', "a=b", "tab\t", "line\nline", ""))

const cause = fc.oneof(
  text.map((message) => Cause.fail(new Error(message))),
  text.map(Cause.die),
  fc.constant(Cause.interrupt(7))
)

describe("a line of the log", () => {
  it("says everything on one line", () => {
    const [line] = linesOf(
      Effect.logWarning("a handler failed", { attempts: 2 }).pipe(Effect.annotateLogs("queue", "orders")),
      logger
    )
    assert.match(
      line!,
      /^timestamp=\S+Z level=WARN fiber=#\d+ message="a handler failed" message="{\\"attempts\\":2}" queue=orders$/
    )
  })

  it("is that of Logger.formatLogFmt, whatever is logged", () =>
    fc.assert(
      fc.property(
        fc.array(fc.oneof(text, fc.anything(), cause), { maxLength: 4 }),
        fc.dictionary(text, fc.oneof(text, fc.anything())),
        fc.array(text, { maxLength: 2 }),
        (messages, annotations, spans) => {
          const logged = spans.reduce(
            (effect, span) => Effect.withLogSpan(effect, span),
            Effect.annotateLogs(Effect.logError(...messages), annotations)
          )
          const [ours, theirs] = linesOf(logged, logger, Logger.withConsoleError(Logger.formatLogFmt))
          assert.isDefined(ours)
          assert.strictEqual(ours, theirs)
        }
      )
    ))

  it("and so is that of a message that is no list", () => {
    const lines = linesOf(
      Effect.withFiber((fiber) =>
        Effect.sync(() => {
          const options = { message: "bare", logLevel: "Info", cause: Cause.empty, fiber, date: new Date(0) } as const
          for (const each of fiber.getRef(References.CurrentLoggers)) each.log(options)
        })
      ),
      logger,
      Logger.withConsoleError(Logger.formatLogFmt)
    )
    assert.match(lines[0]!, /^timestamp=1970-01-01T00:00:00.000Z level=INFO fiber=#\d+ message=bare$/)
    assert.strictEqual(lines[0], lines[1])
  })
})
