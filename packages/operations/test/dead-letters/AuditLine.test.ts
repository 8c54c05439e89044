import { expect, test } from "vitest"
import { AuditLine } from "../../src/index.ts"

test("the line of a letter has its id, key, fairBy and goal, if it has them", () => {
  const operation = { operation: "fix-17", command: "redrive", operator: "ann", broker: "pg", queue: "orders.dlq" }
  const origin = {
    queue: "orders",
    attempts: 3,
    reason: "permanent",
    at: 0,
    error: { name: "E", message: "" }
  } as const
  const letters = [
    { id: "a", key: "customer-7", fairBy: "acme", origin },
    { id: "b", origin: undefined }
  ]
  const linesOf = (more: Partial<AuditLine.Operation>) =>
    AuditLine.ofLetters({ ...operation, ...more }, letters, 0)
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line))
  const common = { time: "1970-01-01T00:00:00.000Z", event: "letter", ...operation }
  const [a, b] = [
    { ...common, letter: "a", key: "customer-7", fairBy: "acme" },
    { ...common, letter: "b" }
  ]
  expect(linesOf({})).toEqual([{ ...a, to: "orders" }, b])
  expect(linesOf({ to: "other" })).toEqual([
    { ...a, to: "other" },
    { ...b, to: "other" }
  ])
  expect(linesOf({ isRemoval: true })).toEqual([a, b])
})
