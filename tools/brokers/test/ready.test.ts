import { afterEach, assert, expect, test, vi } from "vitest"
import { untilReady, type Waiting } from "../src/ready.ts"

const said: Array<string> = []
const waiting = (details: Partial<Waiting> = {}): Waiting => ({
  what: "a server",
  deadline: 60_000,
  isAlive: () => true,
  log: () => "I cannot",
  say: (line) => said.push(line),
  ...details
})
afterEach(() => vi.restoreAllMocks())

const refused = () => Promise.reject(new Error("ECONNREFUSED"))

test("asks until there is an answer, and answers with it", async () => {
  const answers = [refused, refused, () => Promise.resolve("4.3.6")]
  assert.strictEqual(await untilReady(() => answers.shift()!(), waiting()), "4.3.6")
  assert.isEmpty(answers)
})

test("one that has ended is not waited for, and what it said is told", async () => {
  const ask = vi.fn<typeof refused>(refused)
  const isAlive = () => ask.mock.calls.length < 2
  await expect(untilReady(ask, waiting({ isAlive }))).rejects.toThrow(
    "a server ended before it was ready. Its log ends:\nI cannot"
  )
  expect(ask).toHaveBeenCalledTimes(2)
})

test("one that is not ready in time is ended", async () => {
  const end = vi.fn<() => Promise<void>>(async () => {})
  await expect(untilReady(refused, waiting({ deadline: 20, end }))).rejects.toThrow(
    "a server is not ready after 20 ms (ECONNREFUSED). Its log ends:\nI cannot"
  )
  expect(end).toHaveBeenCalledOnce()
})

test("an answer may take a minute, and no longer than what is left", async () => {
  const asked: Array<number> = []
  const ask = async (milliseconds: number) => {
    asked.push(milliseconds)
    if (asked.length < 2) throw new Error("not yet")
  }
  await untilReady(ask, waiting({ deadline: 300_000 }))
  assert.deepStrictEqual(asked, [60_000, 60_000])
})

test("what takes long says so, from 10 seconds on", async () => {
  let seconds = 0
  vi.spyOn(performance, "now").mockImplementation(() => 1000 * seconds)
  const ask = async () => {
    if (seconds === 16) return
    seconds += 4
    throw new Error("ECONNREFUSED")
  }
  await untilReady(ask, waiting())
  assert.deepStrictEqual(said, ["Waiting for a server since 12 s (ECONNREFUSED) ..."])
})
