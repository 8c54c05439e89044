import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Draft from "../../src/dead-letters/LetterDraft.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const json = { "content-type": "application/json" }
const letter = (body: string, headers: Record<string, string> = json): Draft.Content => ({ body: bytes(body), headers })
const draft = (content: Draft.Content, change: (text: string) => string) =>
  Draft.read(change(Draft.write(content, "The dead letter a of q.dlq.")), content)

describe("a draft", () => {
  it("shows headers and body", () => {
    assert.strictEqual(
      Draft.write(letter('{"a":1}', { ...json, tenant: "acme" }), "The dead letter a of q.dlq."),
      [
        "# The dead letter a of q.dlq.",
        "# Headers, an empty line, the body. To cancel, change nothing or delete everything.",
        "content-type: application/json",
        "tenant: acme",
        "",
        '{"a":1}'
      ].join("\n")
    )
  })

  it("is unchanged as it was written, also when an editor ends its last line", () => {
    const text = fc.string({ unit: "grapheme" })
    const header = fc.string({ unit: "grapheme-ascii", minLength: 1 })
    fc.assert(
      fc.property(text, fc.dictionary(header, text), fc.constantFrom("", "\n"), (body, headers, end) => {
        const content = letter(body, headers)
        fc.pre(Draft.obstacle(content) === undefined && !body.endsWith("\n"))
        assert.strictEqual(
          draft(content, (written) => `${written}${end}`),
          "unchanged"
        )
      })
    )
  })

  it("is read with another body, and other headers", () => {
    assert.deepStrictEqual(
      draft(letter('{"a":1}'), (text) => `${text.replace("1", "2").replace("json\n", "json\ntenant: b: c\n")}\n`),
      letter('{"a":2}', { ...json, tenant: "b: c" })
    )
    assert.deepStrictEqual(
      draft(letter("a\n\nb", {}), (text) => text.replace(/b$/, "c\n")),
      letter("a\n\nc", {})
    )
    // A body may begin as a comment does.
    assert.deepStrictEqual(
      draft(letter("# a", {}), (text) => `${text}!`),
      letter("# a!", {})
    )
  })

  it("that was emptied changes nothing", () => {
    assert.strictEqual(
      draft(letter("{}"), () => "# \n\n"),
      "unchanged"
    )
  })

  it.each([
    ["no JSON", (text: string) => text.replace("{}", "{"), /^the body is not JSON, though its content-type is JSON: /],
    [
      "no header",
      (text: string) => text.replace("content-type:", "content-type"),
      /^"content-type .*" is not a valid header/
    ],
    ["a header twice", (text: string) => text.replace("\n\n", "\ncontent-type: x\n\n"), /content-type occurs twice$/],
    ["Requeue's own", (text: string) => text.replace("\n\n", "\nrequeue: x\n\n"), /requeue belongs to Requeue$/],
    ["no empty line", (text: string) => text.replace("\n\n", "\n"), /no empty line/]
  ])("says what is wrong: %s", (_, change, problem) => {
    const read = draft(letter("{}"), change)
    assert.match(typeof read === "object" && "problem" in read ? read.problem : "", problem)
  })
})

it.each([
  ["bytes that are no text", { body: Uint8Array.of(0xff), headers: {} }, "its body is not text"],
  ["an encoded body", letter("x", { "Content-Encoding": "gzip" }), "its body is encoded: gzip"],
  ["a header of several lines", letter("x", { a: "1\n2" }), 'its header "a" does not fit into a line'],
  ["text", letter("x", { a: "1" }), undefined]
])("edits text alone: %s", (_, content, obstacle) => assert.strictEqual(Draft.obstacle(content), obstacle))
