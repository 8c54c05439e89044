/** Nothing that a producer sends acts on a terminal, wherever it is shown. */
import { Metadata } from "@requeue/core/port"
import { type DeadLetters, LetterLine } from "@requeue/operations"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Body from "../src/Body.ts"
import * as LetterView from "../src/LetterView.ts"
import * as Printable from "../src/Printable.ts"

/** An escape sequence; C1 alone; a newline; overrides, isolates and marks of directions; a line and a paragraph. */
const evil = "\u001b[31m \u009b31m \n \u202e \u2066 \u200f \u061c \u2028 \u2029 \u007f"
const acts = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u

const letter: DeadLetters.DeadLetter = {
  id: evil,
  body: Buffer.from(evil.replaceAll("\n", "")),
  headers: { [evil]: evil },
  native: { evil },
  firstPublished: 1,
  redrives: 0,
  history: [{ attempt: 1, at: 1, error: evil, delay: 1 }],
  metadata: { ...Metadata.make("a", 1), id: evil },
  origin: {
    queue: evil,
    attempts: 1,
    reason: "permanent",
    at: 1,
    error: {
      name: evil,
      message: evil,
      stack: `    at ${evil.replaceAll("\n", "")}\ncaused by: ${evil.replaceAll("\n", "")}`
    }
  }
}

describe("text of messages", () => {
  it("is shown without what acts on a terminal", () => {
    for (const cell of LetterView.row(letter, 2)) assert.notMatch(cell, acts)
    const lines = LetterView.detail(letter).split("\n")
    assert.lengthOf(lines, 12)
    for (const line of lines) assert.notMatch(line, acts)
  })

  it("keeps what it is in JSON, where the same is escaped", () => {
    for (const line of [LetterLine.format("q", letter), Printable.json(LetterView.toJson(letter))]) {
      assert.notMatch(line, acts)
      assert.strictEqual(JSON.parse(line).id, evil)
    }
    assert.match(Printable.json({ a: [1] }, undefined, 2), /\n {2}"a": \[\n/)
    fc.assert(
      fc.property(fc.jsonValue(), (value) =>
        assert.deepStrictEqual(JSON.parse(Printable.json(value)), JSON.parse(JSON.stringify(value)))
      )
    )
  })

  it("has the stack trace below its error, in its own lines", () => {
    const error = {
      name: "TypeError",
      message: "no",
      stack: "    at a (a.ts:1:1)\ncaused by: Error: b\n    at b (b.ts:1:1)"
    }
    const traced = { ...letter, origin: { ...letter.origin!, error } }
    assert.include(
      LetterView.detail(traced),
      [
        "error      TypeError: no",
        "               at a (a.ts:1:1)",
        "           caused by: Error: b",
        "               at b (b.ts:1:1)",
        "published  "
      ].join("\n")
    )
    assert.deepStrictEqual(LetterView.toJson(traced).origin?.error, error)
  })

  it("keeps its lines and tabs where it is shown whole, and its letters", () => {
    assert.strictEqual(Body.show(Buffer.from("a\n\tü 💥 שלום\r\u0085")), "a\n\tü 💥 שלום\ufffd\ufffd")
    assert.strictEqual(Printable.line("  a\n\tb  c", 5), "a b c")
    assert.strictEqual(Printable.line("abcdef", 5), "abcd…")
  })
})
