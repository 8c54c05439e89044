/** Tables are cut on a terminal only, and there as little as its width asks for. */
import { assert, it } from "vitest"
import * as Table from "../src/Table.ts"

const header = ["count", "error", "example"]
const rows = [["12", "e".repeat(70), "x".repeat(30)]]
const widthsOf = (fit?: Table.Fit) => {
  const [, row = ""] = Table.format(header, rows, fit).split("\n")
  return [row.length, ...row.split(/ {2,}/).map((cell) => cell.length)]
}
const cut = ["error", "example"]

it("cuts nothing without a terminal, or where there is room", () => {
  assert.deepStrictEqual(widthsOf(), [109, 2, 70, 30])
  assert.deepStrictEqual(widthsOf({ width: 109, cut }), [109, 2, 70, 30])
})

it("cuts the widest of the columns that may be cut, and marks it", () => {
  assert.deepStrictEqual(widthsOf({ width: 99, cut }), [99, 2, 60, 30])
  assert.include(Table.format(header, rows, { width: 99, cut }), `${"e".repeat(59)}…  x`)
  assert.deepStrictEqual(widthsOf({ width: 59, cut }), [59, 2, 25, 25])
})

it("leaves some characters of each column on the narrowest terminal", () => {
  assert.deepStrictEqual(widthsOf({ width: 10, cut }), [49, 2, 20, 20])
})
