import assert from "node:assert/strict"
import { test } from "node:test"
import { extract, instrument } from "./examples.mjs"

const page = ["# Title", "```sh", "npm install", "```", "```ts", "const a = 1", "```", "```ts no-run", "never()", "```"]

test("takes the ts blocks of a page, and knows where they stand", () => {
  assert.deepEqual(extract("README.md", page.join("\n")), [
    { file: "README.md", line: 5, run: true, lines: ["const a = 1"] },
    { file: "README.md", line: 8, run: false, lines: ["never()"] }
  ])
})

test("takes the blocks of docstrings, and none of the code", () => {
  const source = ["/**", " * @example", " * ```ts", " * if (a) {", " *   b()", " *", " * ```", " */", "```ts"]
  const [example, ...others] = extract("a.ts", source.join("\n"))
  assert.deepEqual([example.lines, others], [["if (a) {", "  b()", ""], []])
})

test("a block without an end is an error", () => {
  assert.throws(() => extract("README.md", "```ts\nconst a = 1"), /README.md: a ``` has no end/)
})

const calls = [
  ["1 + 1 // => 2", "__check((1 + 1), (2), 1)"],
  ["  await f() // => { a: 1 }", "  __check((await f()), ({ a: 1 }), 1)"],
  [";[1].at(0) // => 1", ";__check(([1].at(0)), (1), 1)"],
  ["return x // => 2", "return __check((x), (2), 1)"],
  ["const x = f() // => 2", "const x = __check((f()), (2), 1)"]
]

for (const [line, call] of calls) {
  test(`makes an assertion of ${line}`, () => {
    const { assertions, code } = instrument({ lines: [line] })
    assert.equal(assertions, 1)
    assert.ok(code.endsWith(`__expect([1]); ${call}`), code)
  })
}

test("leaves other lines, and their numbers, alone", () => {
  const { assertions, code } = instrument({ lines: ["f() // why", "g()"] })
  assert.equal(assertions, 0)
  assert.match(code, /^import .*__expect\(\[\]\); f\(\) \/\/ why\ng\(\)$/)
})
