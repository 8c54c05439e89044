/** The books of a sweep: how many of the letters that wait are those that were there when the work began. */
import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Books from "../../src/dead-letters/internal/books.ts"

it("letters beyond those that are known have arrived, also where another reader has the known ones", () => {
  const of = (ready: number, held: number, known: number | undefined) => {
    const books = Books.make(ready, Number.POSITIVE_INFINITY, held, known)
    return [books.wanted(), books.arrived()]
  }
  assert.deepStrictEqual(of(46, 20, 20), [0, 46])
  assert.deepStrictEqual(of(46, 5, 20), [15, 31])
  assert.deepStrictEqual(of(10, 5, 20), [10, 0])
  assert.deepStrictEqual(of(46, 20, undefined), [46, 0])
  fc.assert(
    fc.property(fc.nat(100), fc.nat(100), fc.nat(100), (ready, held, known) => {
      const [wanted, arrived] = of(ready, held, known)
      assert.strictEqual(wanted! + arrived!, ready)
      assert.isAtMost(wanted!, known)
      assert.isAtLeast(arrived!, 0)
    })
  )
})

it("letters that somebody else took meanwhile are not left", () => {
  const books = Books.make(10, Number.POSITIVE_INFINITY, 0)
  for (let n = 0; n < 4; n++) books.decide()
  books.end(1)
  assert.strictEqual(books.summary().queued, 5)
})
