/** Consumers of one queue that have different dead-letter queues. */
import { assert, describe, it, vi } from "@effect/vitest"
import { open } from "./virtualBroker.ts"

describe("two consumers of one queue", () => {
  it.each([
    ["other dead-letter queues are a warning", "elsewhere", 1],
    ["the same ones are none", undefined, 0]
  ])("%s", async (_, deadLetter, warnings) => {
    const warn = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      await using broker = await open({}, (original) => original, "Warn")
      await broker.requeue.consume("q", {}, () => {})
      await broker.requeue.consume("q", { retry: deadLetter === undefined ? {} : { deadLetter } }, () => {})
      assert.strictEqual(warn.mock.calls.length, warnings)
      for (const call of warn.mock.calls) assert.match(String(call), /different dead-letter queues.*elsewhere.*q\.dlq/)
    } finally {
      warn.mockRestore()
    }
  })

  it("one that has been drained counts no more", async () => {
    const warn = vi.spyOn(console, "error").mockImplementation(() => {})
    try {
      await using broker = await open({}, (original) => original, "Warn")
      const first = await broker.requeue.consume("q", {}, () => {})
      await broker.finish(first.drain())
      await broker.requeue.consume("q", { retry: { deadLetter: "elsewhere" } }, () => {})
      assert.strictEqual(warn.mock.calls.length, 0)
    } finally {
      warn.mockRestore()
    }
  })
})
