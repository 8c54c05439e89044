import { Readable } from "node:stream"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Lines from "../src/Lines.ts"

const all = async (stream: Readable) => {
  const lines: Array<string | undefined> = []
  for await (const line of Lines.of(stream)) lines.push(line)
  return lines
}

const read = (...chunks: ReadonlyArray<string | Uint8Array>) =>
  all(Readable.from(chunks.map((chunk) => Buffer.from(chunk))))

describe("lines", () => {
  it("end with a line feed alone, wherever chunks end", async () => {
    const line = fc.string({ unit: fc.constantFrom("a", "\u2028", "\u2029", "\u0085", "\r", "\v", "\f", "é", "💥") })
    const law = fc.asyncProperty(fc.array(line, { maxLength: 5 }), fc.nat({ max: 40 }), async (lines, cut) => {
      const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(""))
      assert.deepStrictEqual(await read(bytes.subarray(0, cut), bytes.subarray(cut)), lines)
    })
    await fc.assert(law)
  })

  it.each([
    ["without an end", ["a\nb"], ["a", "b"]],
    ["that are empty", ["\n\na"], ["", "", "a"]],
    ["of nothing", [""], []],
    ["behind a byte order mark", ["\ufeffa\n\ufeffb\n"], ["a", "\ufeffb"]],
    ["that are no UTF-8", [Buffer.from([97, 10, 0xff, 10, 98])], ["a", undefined, "b"]]
  ])("%s", async (_, chunks, lines) => assert.deepStrictEqual(await read(...chunks), lines))

  it("throw what the stream throws", async () => {
    const broken = new Readable({ read: () => broken.destroy(new Error("gone")) })
    const error: unknown = await all(broken).catch((cause: unknown) => cause)
    assert.match(String(error), /gone/)
  })
})
