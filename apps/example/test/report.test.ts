import { expect, test } from "vitest"
import { isSound, type Report } from "../src/report.ts"
import { epilogue, summary } from "../src/summary.ts"

const books = {
  published: 10,
  delivered: 8,
  deadLettered: 2,
  queued: 0,
  missing: 0,
  balanced: true,
  duplicates: 0,
  unconfirmed: 0
}

const sound: Report = {
  broker: "memory",
  continues: null,
  keeps: "nothing",
  outbox: false,
  seed: 1,
  ...books,
  retried: 5,
  timedOut: 1,
  measured: 5,
  early: 0,
  lateness: { min: 1, median: 2, p99: 3, max: 4 },
  deadLettersByReason: { permanent: 2 },
  causes: [{ reason: "permanent", error: "moved answered 410", count: 2 }],
  attempts: { 1: { delivered: 8, deadLettered: 2 } },
  rejected: 0,
  stopped: null,
  redrive: { redriven: 2, ...books, delivered: 10, deadLettered: 0 },
  elapsedMs: 12_345
}

const plain = (_: string, text: string): string => text

test("a sound run ends well, also one that was stopped", () => {
  const stopped = { by: "SIGTERM", complete: true, interrupted: 0, drainMs: 5 } as const
  expect(isSound(sound)).toBe(true)
  expect(isSound({ ...sound, stopped, redrive: null })).toBe(true)
})

test.each<[string, Partial<Report>]>([
  ["books that do not balance", { balanced: false }],
  ["books that do not balance after the redrive", { redrive: { redriven: 2, ...books, balanced: false } }],
  ["a retry that came early", { early: 1 }],
  ["a request that was turned away", { rejected: 1 }],
  ["a stall", { stopped: { by: "stall", complete: true, interrupted: 0, drainMs: 5 } }]
])("%s is a failure", (_, change) => {
  expect(isSound({ ...sound, ...change })).toBe(false)
  expect(epilogue({ ...sound, ...change }, plain)).toContain("Something is wrong")
})

test("the summary says by how much the books are wrong", () => {
  expect(summary(sound, plain)).toContain("10 = 8 + 2 + 0")
  expect(summary({ ...sound, balanced: false, missing: 3 }, plain)).toContain("3 lost")
  expect(summary({ ...sound, balanced: false, missing: -3 }, plain)).toContain("3 in two places")
})
