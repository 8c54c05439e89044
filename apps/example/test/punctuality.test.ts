import { expect, test } from "vitest"
import { turn } from "../src/ledger.ts"
import { measure } from "../src/punctuality.ts"
import type { Visit } from "../src/receiver.ts"

const visit = (id: string, attempt: number, at: number, notBefore?: number): Visit => ({
  id,
  endpoint: "crm",
  attempt,
  at,
  answer: "Busy",
  notBefore,
  accepted: false
})

const due = (...entries: ReadonlyArray<readonly [string, number, number]>) =>
  new Map(entries.map(([id, attempt, at]) => [turn(id, attempt), at]))

test("a retry is as late as it came after it was due", () => {
  const visits = [visit("a", 1, 100), visit("a", 2, 305), visit("a", 3, 810)]
  expect(measure(visits, due(["a", 2, 300], ["a", 3, 800]))).toEqual({
    measured: 2,
    early: 0,
    lateness: { min: 5, median: 5, p99: 10, max: 10 }
  })
})

test("a retry before its time is early, by however little", () => {
  expect(measure([visit("a", 2, 299.99)], due(["a", 2, 300])).early).toBe(1)
})

test("what the receiver asked for counts as well, though the dispatcher asked for less", () => {
  expect(measure([visit("a", 1, 100, 1100), visit("a", 2, 1050)], due(["a", 2, 1000]))).toMatchObject({
    measured: 1,
    early: 1
  })
  expect(measure([visit("a", 1, 100, 1100), visit("a", 2, 1101)], due(["a", 2, 1000])).early).toBe(0)
})

test("first deliveries are not measured, and nothing is measured of nothing", () => {
  expect(measure([visit("a", 1, 100)], new Map())).toEqual({
    measured: 0,
    early: 0,
    lateness: { min: 0, median: 0, p99: 0, max: 0 }
  })
})
