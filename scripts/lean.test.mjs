import assert from "node:assert/strict"
import { test } from "node:test"
import { ascii, skimmed } from "./lean.mjs"

/** What a module exports, as the engine sees it. */
const exported = (code) => import(`data:text/javascript,${encodeURIComponent(code)}`)

const arrows = [
  ["an expression", "export const f = (a, b) => a + b", "f(1, 2)"],
  ["statements", "export const f = (a, b) => {\nreturn a + b\n}", "f(1, 2)"],
  ["an object", "export const f = (a) => ({ a })", "f(1)"],
  ["an expression on a line of its own", "export const f = (a) =>\n  a === 1", "f(1)"],
  ["a sequence", "export const f = (a) => (a, 2)", "f(1)"],
  ["an arrow in parameters", "export const f = (a, g = (b) => a + b) => g(3)", "f(1)"],
  ["a pattern", "export const f = ({ a, ...rest }, [b]) => [a, b, rest]", "f({ a: 1, c: 3 }, [2])"],
  ["an arrow that makes one", "export const f = (a) => (b) => (c) => [a, b, c]", "f(1)(2)(3)"],
  ["async", "export const f = async (a) => await a", "await f(1)"],
  ["async of arrow", "export const f = async(a = () => 5) => a()", "await f()"],
  ["a condition", "export const f = true ? (a) => a : (a) => -a", "f(1)"],
  ["an argument", "export const f = [3, 1, 2].map((a) => a * 2).toSorted((a, b) => a - b)", "f"],
  ["a part of an object", "export const f = { a: (b) => b, c: { d: () => 2 } }", "[f.a(1), f.c.d()]"],
  ["called at once", "export const f = (() => 1)()", "f"],
  ["an annotated call", "export const f = (a) => /* @__PURE__ */ String(a)", "f(1)"],
  ["a class", "export const f = class { x = 1; y = () => this.x; static z = () => this.name }", "[new f().y(), f.z()]"],
  ["within a function", "export function f() { return (() => this)() }", "f.call(3)"],
  ["a name", "export const f = () => 1", "f.name"],
  ["how many parameters", "export const f = (a, b, c = 1) => 1", "f.length"]
]

for (const [what, code, question] of arrows) {
  test(`${what}: it does the same`, async () => {
    const answer = async (text) => (await exported(`${text}\nexport const answer = ${question}`)).answer
    assert.deepEqual(await answer(skimmed(code)), await answer(code))
  })
}

test("none is left on the outermost level", () => {
  assert.equal(skimmed("const f = (a) => [a].map((b) => b)"), "const f = function(a){return [a].map((b) => b)}")
  assert.equal(skimmed("const f = async (a) => { await a }"), "const f = async function(a){ await a }")
})

test("texts, templates and expressions mean the same in ASCII", async () => {
  const code = "export const all = ['“µ…”', `«${1}»`, /[^”]µ/u.source.length, /^“[^”]*”$/.test('“x”'), '😀']"
  assert.match(ascii(code), /^[\0-\x7f]*$/)
  const [was, is] = await Promise.all([code, ascii(code)].map(exported))
  assert.deepEqual(is.all.toSpliced(2, 1), was.all.toSpliced(2, 1))
})
