import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as PageSize from "../src/PageSize.ts"

const mib = 2 ** 20

/** Looks at messages of so many bytes each; answers the bytes and the lengths of its pages. */
const look = (messages: ReadonlyArray<number>) => {
  const pages = PageSize.make()
  const seen: Array<ReadonlyArray<number>> = []
  for (let at = 0; at < messages.length; ) {
    const page = messages.slice(at, at + pages.size())
    at += page.length
    pages.seen(page)
    seen.push(page)
  }
  return seen
}

const bytesOf = (page: ReadonlyArray<number>): number => page.reduce((a, b) => a + b, 0)

describe("PageSize", () => {
  it("has pages that grow, and are small where messages are large", () => {
    const lengths = (messages: ReadonlyArray<number>) => look(messages).map((page) => page.length)
    assert.deepStrictEqual(lengths(Array.from({ length: 800 }, () => 100)), [1, 16, 256, 256, 256, 15])
    assert.deepStrictEqual(lengths(Array.from({ length: 9 }, () => mib)), [1, 4, 4])
    assert.deepStrictEqual(lengths([9 * mib, 9 * mib, 9 * mib]), [1, 1, 1])
  })

  it("has pages of any messages that are no larger than about 4 MiB, or than the messages before let expect", () => {
    const sizes = fc.array(fc.oneof(fc.nat(2000), fc.integer({ min: mib / 4, max: 2 * mib })), { maxLength: 400 })
    fc.assert(
      fc.property(sizes, (messages) => {
        const pages = look(messages)
        assert.deepStrictEqual(pages.flat(), messages)
        for (const [at, page] of pages.entries()) {
          const before = pages[at - 1] ?? [0]
          const excess = Math.max(1, ...page) / Math.max(1, ...before)
          assert.isAtMost(bytesOf(page), Math.max(Math.max(...page), 4 * mib * Math.max(1, excess)))
          assert.isAtMost(page.length, at === 0 ? 1 : Math.min(256, 16 * before.length))
        }
      })
    )
  })

  it("asks for as many as before after a page that nobody has sent", () => {
    const pages = PageSize.make()
    pages.seen([10])
    pages.seen([])
    assert.strictEqual(pages.size(), 16)
  })
})
