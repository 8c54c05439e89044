/** When the answer that a queue is empty is believed. */
import { afterEach, assert, beforeEach, test, vi } from "vitest"
import { verifyPassive } from "../src/internal/connect/verifyPassive.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

/** An answer, and the milliseconds that it takes, in their order; the last one stays. */
type Script = ReadonlyArray<readonly [count: number, millis: number]>

const player = (script: Script) => {
  let next = 0
  return () => {
    const [count, millis] = script[Math.min(next++, script.length - 1)]!
    return new Promise<number>((resolve) => setTimeout(() => resolve(count), millis))
  }
}

/** The count that is believed, and the questions about the queue. */
const asked = async (queue: Script, line: Script) => {
  const [ask, askLine] = [player(queue), player(line)]
  let questions = 0
  const channel: Parameters<typeof verifyPassive>[0] = {
    checkQueue: async () => {
      questions++
      return { messageCount: await ask(), consumerCount: 0 }
    },
    checkExchange: () => askLine()
  }
  verifyPassive(channel)
  const answer = channel.checkQueue("q")
  await vi.advanceTimersByTimeAsync(60_000)
  return [(await answer).messageCount, questions]
}

test.each<[string, Script, Script, readonly [count: number, questions: number]]>([
  ["a prompt answer is believed", [[0, 5]], [[0, 5]], [0, 1]],
  ["messages are believed, however late", [[7, 900]], [[0, 5]], [7, 1]],
  [
    "a leader that is silent is asked until it answers",
    [
      [0, 255],
      [0, 255],
      [7, 5]
    ],
    [[0, 5]],
    [7, 3]
  ],
  [
    "a machine that is busy once makes no queue empty",
    [
      [0, 255],
      [7, 5]
    ],
    [[0, 255]],
    [7, 2]
  ],
  ["on a slow line, a second answer like the first is believed", [[0, 400]], [[0, 400]], [0, 2]],
  [
    "and not one after a silent leader's",
    [
      [0, 255],
      [0, 255],
      [0, 255],
      [7, 5]
    ],
    [
      [0, 255],
      [0, 5],
      [0, 255]
    ],
    [7, 4]
  ]
])("%s", async (_, queue, line, expected) => {
  assert.deepStrictEqual(await asked(queue, line), [...expected])
})
