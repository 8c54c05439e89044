import { PassThrough } from "node:stream"
import { WriteStream } from "node:tty"
import { afterEach, expect, test, vi } from "vitest"
import { makeScreen } from "../src/screen.ts"

const streamOf = (tty: object) => {
  const written: Array<string> = []
  const stream = new PassThrough().on("data", (chunk: Buffer) => written.push(chunk.toString()))
  return { stream: Object.assign(stream, tty) as unknown as NodeJS.WriteStream, text: () => written.join("") }
}
const getColorDepth = WriteStream.prototype.getColorDepth.bind(WriteStream.prototype)
const terminal = { isTTY: true, columns: 100, rows: 40, getColorDepth }
const escape = "\u001b"

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
})

test("a terminal is redrawn in place, and what is printed stays", () => {
  vi.stubEnv("TERM", "xterm")
  const { stream, text } = streamOf(terminal)
  const screen = makeScreen(stream)
  const draw = () =>
    screen.draw(
      () => ["one", "two"],
      () => "line",
      false
    )
  draw()
  draw()
  screen.print("printed")
  draw()
  const block = `${escape}[2Kone\n${escape}[2Ktwo\n${escape}[J`
  expect(text()).toBe(`${block}${escape}[2A${block}printed\n${block}`)
})

test.each<[string, object, string]>([
  ["a pipe", {}, "xterm"],
  ["a dumb terminal", terminal, "dumb"],
  ["a terminal that is too small", { ...terminal, columns: 60 }, "xterm"]
])("%s gets plain lines: the first, one every two seconds, and the last", (_, tty, term) => {
  vi.stubEnv("TERM", term)
  vi.useFakeTimers({ toFake: ["performance"] })
  const { stream, text } = streamOf(tty)
  const screen = makeScreen(stream)
  for (const [index, after] of [0, 1999, 1, 1].entries()) {
    vi.advanceTimersByTime(after)
    screen.draw(
      () => ["block"],
      () => `line ${index}`,
      index === 3
    )
  }
  expect(text()).toBe("line 0\nline 2\nline 3\n")
})

test("colors are for terminals, unless NO_COLOR is set", () => {
  vi.stubEnv("NO_COLOR", undefined)
  vi.stubEnv("FORCE_COLOR", undefined)
  vi.stubEnv("TERM", "xterm-256color")
  // Node looks for the CI services that it knows before it looks at the terminal.
  vi.stubEnv("CI", undefined)
  expect(makeScreen(streamOf(terminal).stream).paint("red", "x")).toContain(escape)
  expect(makeScreen(streamOf({}).stream).paint("red", "x")).toBe("x")
  vi.stubEnv("NO_COLOR", "1")
  expect(makeScreen(streamOf(terminal).stream).paint("red", "x")).toBe("x")
})
