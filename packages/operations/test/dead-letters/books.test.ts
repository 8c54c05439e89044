/** The books of a sweep: how many of the letters that wait are those that were there when the work began. */
import { assert, it } from "@effect/vitest"
import type { Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as fc from "fast-check"
import * as Books from "../../src/dead-letters/internal/sweepStats.ts"

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

it("letters that another reader took meanwhile are not left, and are held as far as it has them", () => {
  const of = (heldBefore: number | undefined, heldNow: number | undefined) => {
    const books = Books.make(10, Number.POSITIVE_INFINITY, heldBefore)
    for (let n = 0; n < 4; n++) books.decide()
    books.end({ ready: 1, held: heldNow }, 0)
    const { held, queued } = books.summary()
    return [queued, held]
  }
  assert.deepStrictEqual(of(0, 0), [5, 0])
  assert.deepStrictEqual(of(0, 3), [5, 3])
  // Some of these have arrived since.
  assert.deepStrictEqual(of(0, 50), [5, 5])
  assert.deepStrictEqual(of(2, 50), [5, 7])
  assert.deepStrictEqual(of(undefined, undefined), [5, undefined])
})

it("an end at which no letter is missing changes nothing", () => {
  const books = Books.make(2, Number.POSITIVE_INFINITY, 3)
  for (let n = 0; n < 2; n++) books.decide()
  books.end({ ready: 0, held: undefined }, 0)
  assert.deepInclude(books.summary(), { queued: 2, held: 3 })
})

it("letters that the browser holds, and that were not decided on, are with no other reader", () => {
  const books = Books.make(10, 4, 0)
  for (let n = 0; n < 4; n++) books.decide()
  books.end({ ready: 0, held: 0 }, 6)
  assert.deepInclude(books.summary(), { queued: 10, held: 0 })
})

it("a letter that is removed twice counts once", () => {
  const books = Books.make(2, Number.POSITIVE_INFINITY, 0, undefined, ({ metadata }) => metadata.id)
  const letter = { metadata: Metadata.make("a", 0) } as Delivery.Delivery
  books.leaves(letter)
  for (let n = 0; n < 2; n++) books.remove(letter)
  assert.deepInclude(books.summary(), { removed: 1, unremoved: 0 })
})
