import assert from "node:assert/strict"
import { test } from "node:test"
import { compiledImports, patch, reaches } from "./patched.mjs"

const wanted = { file: "src/settle.ts", text: "a + b", replacement: "a - $&" }

test("the text of the file is replaced, and its replacement stands there as it is", () =>
  assert.equal(patch("/home/src/settle.ts", "const c = a + b", wanted), "const c = a - $&"))

test("other files stay as they are", () => assert.equal(patch("/home/src/other.ts", "a + b", wanted), "a + b"))

for (const source of ["", "a + b + a + b"]) {
  test(`a text that does not occur once is an error: "${source}"`, () =>
    assert.throws(() => patch("/home/src/settle.ts", source, wanted), /expected its text once/))
}

const graph = {
  "/test/harness.ts": ["effect/Effect", "../src/index.ts"],
  "/src/index.ts": ["./consume.ts", "./plan.ts"],
  "/src/consume.ts": ["./settle.ts", "./index.ts"],
  "/src/settle.ts": [],
  "/src/plan.ts": ["node:path"]
}
const copied = (file) => Object.keys(graph).filter((module) => reaches(module, file, (name) => graph[name]))

test("the modules that import the patched file, directly or not, are copied, and no others", () => {
  assert.deepEqual(copied("src/settle.ts"), ["/test/harness.ts", "/src/index.ts", "/src/consume.ts", "/src/settle.ts"])
  assert.deepEqual(copied("src/plan.ts"), ["/test/harness.ts", "/src/index.ts", "/src/consume.ts", "/src/plan.ts"])
  assert.deepEqual(copied("src/other.ts"), [])
})

test("an import of types is none when the module is compiled", () => {
  const source = [
    'import type * as A from "./a.ts"',
    "import type {",
    "  B",
    '} from "./b.ts"',
    'import { type C, d } from "./c.ts"',
    'export type { E } from "./e.ts"',
    "export type F = string",
    'export * from "./f.ts"'
  ]
  assert.deepEqual(compiledImports(source.join("\n")), ["./c.ts", "./f.ts"])
})
