import { describe, expect, it } from "vitest"
import * as Checker from "../src/check/Checker.ts"
import { retryAfter } from "../src/check/internal/Allowed.ts"
import * as Verdict from "../src/check/internal/Verdict.ts"
import type { Asked, Call } from "../src/History.ts"
import * as Thrown from "../src/program/Thrown.ts"
import * as Story from "./Story.ts"

const { ack, call, retry } = Story

/** All calls that make a difference to message 1, and one on another message that makes none. */
const alphabet: ReadonlyArray<Call> = [
  call("ack", 1),
  call("retry", 1),
  call("retry", 1, 5),
  call("fail", 1, 7),
  call("ackAll"),
  call("retryAll"),
  call("retryAll", undefined, 9),
  call("ack", 2)
]

const sequences = (length: number): ReadonlyArray<ReadonlyArray<Call>> =>
  length === 0 ? [[]] : [[], ...sequences(length - 1).flatMap((rest) => alphabet.map((each) => [each, ...rest]))]

const verdictOf = (calls: ReadonlyArray<Call>): Verdict.Verdict =>
  calls.reduce((verdict, each) => Verdict.after(verdict, each, 1), Verdict.none)

it("knows the delay that handlers ask for by their errors", () => {
  expect(retryAfter).toBe(Thrown.retryAfter)
})

describe("the table of calls", () => {
  const a = (name: "ack" | "retry", delay?: number) => call(name, 1, delay)
  const retryAll = (delay?: number) => call("retryAll", undefined, delay)
  const ackAll = call("ackAll")

  it.each<[string, ReadonlyArray<Call>, "ack" | number | undefined, "ack" | number | undefined]>([
    ["none", [], undefined, undefined],
    ["A.ack, A.retry", [a("ack"), a("retry")], "ack", undefined],
    ["A.retry(5), A.ack, A.retry(9)", [a("retry", 5), a("ack"), a("retry", 9)], 5, undefined],
    ["A.ack, retryAll(9)", [a("ack"), retryAll(9)], "ack", 9],
    ["A.retry(5), ackAll", [a("retry", 5), ackAll], 5, "ack"],
    ["A.retry, retryAll(9)", [a("retry"), retryAll(9)], 9, 9],
    ["A.retry(5), retryAll(9)", [a("retry", 5), retryAll(9)], 5, 9],
    ["ackAll, A.retry(5)", [ackAll, a("retry", 5)], "ack", "ack"],
    ["retryAll(9), A.ack", [retryAll(9), a("ack")], 9, 9],
    ["retryAll(9), A.retry(5)", [retryAll(9), a("retry", 5)], 5, 9],
    ["ackAll, retryAll", [ackAll, retryAll()], "ack", "ack"],
    ["retryAll(9), ackAll", [retryAll(9), ackAll], 9, 9],
    ["retryAll(9), retryAll(3)", [retryAll(9), retryAll(3)], 9, 9]
  ])("%s", (_, calls, onA, onOthers) => {
    const told = (key: number) => {
      const { all, own, tag } = calls.reduce((verdict, each) => Verdict.after(verdict, each, key), Verdict.none)
      return tag === "retry" ? (own ?? all) : tag
    }
    expect(told(1)).toBe(onA)
    expect(told(2)).toBe(onOthers)
  })

  it("is: the first call that reaches a message decides, and the first delay of its own before that of all", () => {
    for (const calls of sequences(4)) {
      const reaching = calls.filter(({ key }) => key === undefined || key === 1)
      const delays = (isOwn: boolean) =>
        reaching.filter(({ delay, key }) => (key === 1) === isOwn && delay !== undefined).map(({ delay }) => delay)
      const [first] = reaching
      const isRetry = first !== undefined && !first.name.startsWith("ack")
      const { all, own, tag } = verdictOf(calls)
      expect({ calls, tag, delay: isRetry ? (own ?? all) : undefined }).toEqual({
        calls,
        tag: isRetry ? "retry" : first && "ack",
        delay: isRetry ? (delays(true)[0] ?? delays(false)[0]) : undefined
      })
    }
  })
})

it("allows exactly one settlement after each sequence of calls and each end", () => {
  const settlements: ReadonlyArray<Asked> = [
    ack,
    ...[5, 7, 9, 1000].map(retry),
    Story.deadLetter("permanent"),
    Story.release
  ]
  const world = Story.scenario({ version: { batch: { size: 1, wait: 0 } } })
  for (const calls of sequences(3)) {
    for (const error of [undefined, "error", "permanent"]) {
      const allowed = settlements.filter((settlement) => {
        const story = Story.make()
        story.start("a1")
        const delivery = story.deliver(story.send(1), 1, "a1")
        story.run(delivery, { calls, error })
        story.ask(delivery, settlement)
        return Checker.check(world, story.history).length === 0
      })
      expect({ calls, error, allowed: allowed.length }).toEqual({ calls, error, allowed: 1 })
    }
  }
})
