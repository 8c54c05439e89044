import assert from "node:assert/strict"
import { test } from "node:test"
import { check, count } from "./conventions.mjs"
import { entries } from "./conventions/entries.mjs"
import { inventory } from "./conventions/inventory.mjs"
import { oldWords } from "./conventions/names.mjs"

const violations = (texts) => check(inventory(texts))
const file = "packages/a/src/internal/x.ts"

const lines = (count, before = "") => `${before}function f() {\n${"  g()\n".repeat(count - 2)}}\n`
const nested = (count) =>
  `export const f = (a) => Effect.gen(function* () {\n${"  g()\n".repeat(count - 2)}}).pipe(Effect.orDie)\n`

/** A source text, and the parts of lines that report its violations. @type {Array<[string, Array<string>]>} */
const cases = [
  ["const a = b as Thing", ["x.ts:1 cast or any without a reason"]],
  ["const a = b as Thing // the driver has no types", []],
  ["const a = b as Thing // sic", ["cast or any"]],
  ["const a = b as Thing // oxlint-disable-line some-rule of it", ["cast or any"]],
  ["// the driver has no types\nconst a = b as Thing", ["x.ts:2 cast or any"]],
  ["// Cast, because the driver has no types.\nconst a = b as Thing", []],
  ["// Any, because users throw whatever\n// they like.\nconst f = (a: any) => {\n  return a\n}", []],
  ["const a = b as Thing // Cast, because it has no types\nconst c = d as Thing", ["x.ts:2 cast or any"]],
  ["const a = b as unknown as Thing", ["cast or any"]],
  ["const a = <Thing>b", ["cast or any"]],
  ["const a = { b: 1 } as const", []],
  ["const a = b! satisfies Thing", []],
  ['import { a as b } from "./b.ts"\nexport { b as c }', []],
  ["type A = any", ["cast or any"]],
  ['const any = "any" // or as Thing', []],

  [lines(80), []],
  [lines(81), ["x.ts:1 function of 81 lines"]],
  [lines(81, "// Long, because it is one table.\n"), []],
  [lines(81, "/**\n * Makes it.\n * Long, because it is one table.\n */\nexport "), []],
  [lines(81, "// Long\n"), ["function of 81 lines"]],
  [lines(81, "// Long, because it is one table.\n\n"), ["function of 81 lines"]],
  [nested(81), ["x.ts:1 function of 81 lines"]],
  [`const a = {\n  // Long, because it is one table.\n  f: () => {\n${"g()\n".repeat(80)}  }\n}`, []],

  ["interface Record {}", ["type Record has the name of a global"]],
  ["type Object = string", ["type Object has the name of a global"]],
  ["export class Promise {}", ["type Promise has the name of a global"]],
  ["enum PromiseLike {}", ["type PromiseLike has the name of a global"]],
  ["interface Event {}\ninterface Records {}\nconst Map = 1", []],

  ["const workshop = 1", ["name workshop: the field's word is worker pool"]],
  ["const openWorkshop = () => {}", ["name openWorkshop: the field's word is worker pool"]],
  ["const f = (patience = 1) => {}", ["name patience: the field's word is timeout"]],
  ["interface A {\n  isHungry: boolean\n}", ["x.ts:2 name isHungry: the field's word is ready"]],
  ["const { patience, wait: workshop } = a\nconst b = { patience }", ["name workshop"]],
  ["/** A workshop, where a judge has patience. */\nconst impatience = 'workshop'", []],
  ["export const post = 1", ["name post: the field's word is session"]],
  ["const send = 1\nexport { send as post }", ["x.ts:2 name post"]],
  [
    "const post = 1\nexport const postMessage = (hand) => {}\nexport function f(stay) {}\nexport interface Handler {}",
    []
  ],
  ["interface Wish {}", ["type Wish: the field's word is Request"]],
  ["const Answer = 1\ninterface AnswerOptions {}", []],

  ["/** What a queue holds. */\nconst a = 1", ['x.ts:1 docstring begins with "What"']],
  ["/**\n * What a queue holds.\n */\nconst a = 1", ["docstring begins"]],
  ["/** Whatever a queue holds. What is more. */\nconst a = 1\n// What it is.\n/* What it was. */", []]
]

for (const [text, expected] of cases) {
  test(text.slice(0, 150), () => {
    const found = violations({ [file]: text })
    assert.equal(found.length, expected.length, found.join("\n"))
    for (const [index, part] of expected.entries()) assert.ok(found[index].includes(part), found[index])
  })
}

test("the words of pages count", () => {
  assert.deepEqual(
    oldWords("docs/a.md", "one\nLetters that are homeless, and a sieve that sifts").map(({ line, text }) => [
      line,
      text
    ]),
    [[2, "the word homeless: the field's word is of unknown origin"]]
  )
})

test("names of files count", () => {
  assert.deepEqual(violations({ "packages/a/src/tally.ts": "", "packages/a/src/handler.ts": "" }), [
    "packages/a/src/tally.ts:1 file tally: the field's word is count"
  ])
})

const manifest = (exports, more) => JSON.stringify({ exports, ...more })
const index = { types: "./dist/index.d.ts", default: "./dist/index.js" }
const of = (sources, exports = { ".": index }, more = {}) =>
  violations({
    "packages/a/package.json": manifest(exports, more),
    ...Object.fromEntries(Object.entries(sources).map(([name, text]) => [`packages/a/src/${name}`, text]))
  }).map((line) => line.replace("packages/a/src/", "").replace(/ without docstring: say .*/, ""))

/** Modules of a package, and the names in it without a docstring. */
const documented = [
  [{ "index.ts": "export const a = 1\nconst b = 2" }, ["index.ts:1 export a"]],
  [{ "index.ts": "/** The first. */\nexport const a = 1" }, []],
  [{ "index.ts": "/** The first. */\n// An aside.\nexport const a = 1" }, []],
  [{ "index.ts": "/** @throws RangeError */\nexport const a = 1" }, ["index.ts:2 export a"]],
  [{ "index.ts": "/** The module. */\n\nexport const a = 1" }, ["index.ts:3 export a"]],
  [{ "index.ts": '/** The module. */\nimport "x"\nexport const a = 1' }, ["index.ts:3 export a"]],
  [{ "index.ts": "export function f(a: string): void\n/** Does it. */\nexport function f(a: number): void" }, []],
  [{ "index.ts": "/** A delay. */\nexport type Delay = number\nexport const Delay = 1" }, []],
  [{ "index.ts": "const a = 1\nexport { a as b }" }, ["index.ts:1 export a"]],
  [{ "index.ts": "export const { a, b } = c" }, ["index.ts:1 export a", "index.ts:1 export b"]],
  [
    { "index.ts": 'export { a as b } from "./a.ts"', "a.ts": "export const a = 1\nexport const c = 1" },
    ["a.ts:1 export a"]
  ],
  [{ "index.ts": 'export type { A } from "./a.ts"', "a.ts": "export interface A {}" }, ["a.ts:1 export A"]],
  [{ "index.ts": 'export * from "./a.ts"', "a.ts": "export class A {}" }, ["a.ts:1 export A"]],
  [{ "index.ts": 'import { a } from "./a.ts"\nexport { a }', "a.ts": "export const a = 1" }, ["a.ts:1 export a"]],
  [
    { "index.ts": 'export { a } from "./a.ts"', "a.ts": 'export * from "./b.ts"', "b.ts": "export const a = 1" },
    ["b.ts:1 export a"]
  ],
  [{ "index.ts": 'export * as A from "./a.ts"', "a.ts": "export const a = 1" }, ["a.ts:1 module", "a.ts:1 export a"]],
  [
    { "index.ts": 'export * as A from "./a.ts"', "a.ts": "/** The module. */\n\nexport const a = 1" },
    ["a.ts:3 export a"]
  ],
  [{ "index.ts": '/** The module. */\nexport * as A from "./a.ts"\nexport * from "effect"', "a.ts": "" }, []],
  [
    {
      "index.ts":
        "/** Options. */\nexport interface Options {\n  a: string\n  /** Milliseconds. */\n  b: number\n  c?: never\n}"
    },
    ["index.ts:3 option Options.a"]
  ],
  [
    { "index.ts": "/** Options. */\nexport type SendOptions = A & { readonly a: string }" },
    ["index.ts:2 option SendOptions.a"]
  ]
]

for (const [sources, expected] of documented) {
  test(Object.values(sources).join("\n---\n"), () => {
    assert.deepEqual(of(sources), expected)
  })
}

test("a private package has no public exports", () => {
  assert.deepEqual(of({ "index.ts": "export const a = 1" }, { ".": index }, { private: true }), [])
})

test("an entry without a source is told", () => {
  assert.deepEqual(violations({ "packages/a/package.json": manifest({ ".": index }) }), [
    'packages/a/package.json:1 exports "." leads to no source: name a file that src has'
  ])
})

test("a pattern that opens an internal folder is refused", () => {
  const sources = { "index.ts": "", "deep/internal/a.ts": "" }
  const open = { ".": index, "./*": "./dist/*.js" }
  assert.deepEqual(of(sources, open), [
    'packages/a/package.json:1 exports "./*" lets programs import src/deep/internal/a.ts: close its folder with null'
  ])
  assert.deepEqual(of(sources, { ...open, "./deep/internal/*": null }), [])
})

test("entries are strings, conditions or patterns, and null closes them", () => {
  const exports = {
    ".": { source: "./src/index.ts", node: { types: "./dist/index.d.ts" }, default: "./dist/index.js" },
    "./b": "./dist/deep/B.js",
    "./internal/*": null,
    "./*": { types: "./dist/*.d.ts", default: "./dist/*.js" },
    "./package.json": "./package.json"
  }
  assert.deepEqual(entries({ exports }, ["src/index.ts", "src/deep/B.ts", "src/internal/c.ts"]), [
    { key: ".", files: ["src/index.ts"] },
    { key: "./b", files: ["src/deep/B.ts"] },
    { key: "./*", files: ["src/index.ts", "src/deep/B.ts"] }
  ])
})

test("the table counts what is kept and what is not", () => {
  const text =
    "/**\n * The first.\n *\n * @example\n * ```ts\n * ```\n */\nexport const a = 1 as A // one good reason\n"
  const { "packages/a": row, total } = count(
    inventory({
      "packages/a/package.json": manifest({ ".": index }),
      "packages/a/src/index.ts": `${text}export const b = 1 as B\n${lines(101)}`
    })
  )
  assert.deepEqual(row, total)
  assert.deepEqual(Object.values(row), [1, 1, 1, 2, 1, 1, 2, 1, 0, 0, 0])
})
