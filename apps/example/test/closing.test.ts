import { expect, test } from "vitest"
import { balance, type Books } from "../src/books.ts"
import { close } from "../src/closing.ts"

const booksWith = (queued: number): Books =>
  balance({ published: 3, visits: [], isDelivered: () => false, deadLettered: 0, queued })

/** A broker that counts so many when it is asked, and then the last number for ever. */
const countsOf = (...queued: ReadonlyArray<number>) => {
  const counts = [...queued]
  return async () => booksWith(counts.length > 1 ? counts.shift()! : counts[0]!)
}

test("books that balance are final, without a word", async () => {
  const said: Array<string> = []
  expect(await close(countsOf(3, 0), (line) => said.push(line))).toEqual(booksWith(3))
  expect(said).toEqual([])
})

test("a broker that counts late is waited for, which is said once", async () => {
  const said: Array<string> = []
  expect(await close(countsOf(0, 4, 2, 3), (line) => said.push(line))).toEqual(booksWith(3))
  expect(said).toEqual(["The books do not balance yet: the broker may count late. Waiting up to 60 s"])
})

test.each([2, 4])(
  "books of 3 messages with %i in the queue never balance, and say so after their time",
  async (queued) => {
    expect(await close(countsOf(queued), () => {}, 0)).toMatchObject({ balanced: false, missing: 3 - queued })
  }
)
