/** API reports: their contents, and that a change of what can be imported is rejected. */
import assert from "node:assert/strict"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { after, test } from "node:test"
import { report } from "./api/report.mjs"
import { root } from "./workspace.mjs"

const home = mkdtempSync(join(tmpdir(), "requeue-api-test-"))
after(() => rmSync(home, { recursive: true }))

const write = (file, text) => {
  mkdirSync(dirname(join(home, file)), { recursive: true })
  writeFileSync(join(home, file), text)
}
const api = (...args) =>
  spawnSync(process.execPath, [join(root, "scripts", "api.mjs"), "--root", home, ...args], { encoding: "utf8" })

const exports = { ".": "./src/index.ts", "./internal/*": null, "./*": "./src/*.ts" }
const manifest = { name: "@requeue/a", exports }
const of = (texts, given = manifest) => {
  const named = Object.entries(texts).map(([file, text]) => [`packages/a/src/${file}`, text])
  return report("packages/a", given, Object.fromEntries(named))
}

test("a changed export is refused, with the difference and the command that renews the report", () => {
  write("packages/a/package.json", JSON.stringify(manifest))
  write("packages/a/src/index.ts", 'export * as Queue from "./Queue.ts"\n')
  write("packages/a/src/Queue.ts", "/** Doubles. */\nexport const twice = (value: number) => value * 2\n")
  assert.match(api("--check").stderr, /run npm run api/)
  assert.equal(api().status, 0)
  assert.equal(api("--check").status, 0)
  const before = readFileSync(join(home, "api", "a.api.md"), "utf8")

  write("packages/a/src/Queue.ts", "/** The double. */\nexport const twice = (value: number) => value + value\n")
  assert.equal(api("--check").status, 0)

  write("packages/a/src/Queue.ts", "export const twice = (value: bigint) => value * 2n\n")
  const { status, stderr } = api("--check")
  assert.equal(status, 1)
  assert.match(stderr, /run npm run api and commit/)
  assert.match(stderr, /^--- api\/a\.api\.md$/m)
  assert.match(stderr, /^-export declare const twice: \(value: number\) => number;$/m)
  assert.match(stderr, /^\+export declare const twice: \(value: bigint\) => bigint;$/m)
  assert.equal(readFileSync(join(home, "api", "a.api.md"), "utf8"), before)
})

test("a namespace counts as its members, and a name that is a type and a value counts once", () => {
  const text = of({
    "index.ts": 'export * as Delay from "./Delay.ts"\nexport * from "./internal/b.ts"',
    "Delay.ts": "export type Delay = number\nexport declare const Delay: number\nexport declare const max: Delay",
    "internal/b.ts": "export declare class B {}"
  })
  assert.match(text, /^\| `@requeue\/a` \| 3 \|$/m)
  assert.match(text, /^\| `@requeue\/a\/Delay` \| 2 \|$/m)
  assert.doesNotMatch(text, /^\| `@requeue\/a\/internal/m)
})

test("what a type refers to is reported, and nothing else that cannot be imported", () => {
  const text = of({
    "index.ts":
      'import * as Both from "./internal/both.ts"\nexport declare const run: (given: Both.Used) => import("./internal/c.ts").C',
    "internal/both.ts":
      "export interface Used extends Base { a: string }\ninterface Base {}\nexport interface Unused {}",
    "internal/c.ts": "export interface C {}"
  })
  assert.match(
    text,
    /## Behind the imports: src\/internal\/both\.ts\n\n```ts\ninterface Base \{\}\nexport interface Used/
  )
  assert.match(text, /export interface C/)
  assert.doesNotMatch(text, /Unused/)
})

test("a module that only a namespace leads to is reported whole", () => {
  const only = { name: "@requeue/a", exports: { ".": "./src/index.ts" } }
  const text = of({ "index.ts": 'export * as B from "./B.ts"', "B.ts": "export declare const b: 1" }, only)
  assert.match(text, /^\| `@requeue\/a` \| 1 \|$/m)
  assert.match(text, /export declare const b: 1/)
})

test("the order of declarations does not matter, that of overloads does", () => {
  const [a, b, c] = ["export declare function f(a: 1): 1;", "export declare function f(a: 2): 2;", "export type A = 1;"]
  const made = (...lines) => of({ "index.ts": lines.join("\n") })
  assert.equal(made(a, b, c), made(c, a, b))
  assert.notEqual(made(a, b, c), made(b, a, c))
})

test("a package without imports has no report", () => {
  assert.equal(of({ "index.ts": "export type A = 1" }, { name: "@requeue/a", exports: {} }), undefined)
})
