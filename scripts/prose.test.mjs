import assert from "node:assert/strict"
import { test } from "node:test"
import { budgetsOf, maxTotal, overBudget, wordsIn } from "./prose.mjs"

test("words are what stands between blanks", () => assert.equal(wordsIn("| a | b |\n\nc d"), 7))

test("the table of the index has a budget for each page", () => {
  assert.deepEqual(budgetsOf("| page | job | words |\n| [a](a.md) | do: x | 1,500 |\n| [b](../b.md) | y | 20 |"), {
    "a.md": 1500,
    "../b.md": 20
  })
})

test("a page over its budget, without one, or without a file is named", () => {
  const lines = overBudget({ "a.md": 11, "b.md": 1, "d.md": 5 }, { "a.md": 10, "c.md": 1, "d.md": 5 })
  assert.equal(lines.length, 3)
  assert.match(lines.join("\n"), /a.md: 11 words, 10 allowed[^]*b.md: no budget[^]*c.md.*does not exist/)
})

test("all pages together have a budget", () => {
  const lines = overBudget({ "a.md": maxTotal + 1 }, { "a.md": 50_000 })
  assert.ok(lines.join().includes(`${maxTotal + 1} words, ${maxTotal} allowed`))
})
