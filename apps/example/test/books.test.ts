import { describe, expect, test } from "vitest"
import { balance, type Sources } from "../src/books.ts"
import type { Visit } from "../src/receiver.ts"

const visit = (id: string, accepted = true): Visit => ({
  id,
  endpoint: "ci",
  attempt: 1,
  at: 0,
  answer: accepted ? "Accept" : "Fail",
  notBefore: undefined,
  accepted
})

/** 6 published: a, b, c delivered (b after a failure, c twice), 2 dead letters, 1 queued. */
const sound: Sources = {
  published: 6,
  visits: [visit("a"), visit("b", false), visit("b"), visit("c"), visit("c")],
  isDelivered: () => true,
  deadLettered: 2,
  queued: 1
}

test("each message counts once, wherever it is", () => {
  expect(balance(sound)).toEqual({
    published: 6,
    delivered: 3,
    deadLettered: 2,
    queued: 1,
    missing: 0,
    balanced: true,
    duplicates: 1,
    unconfirmed: 0
  })
})

test("books of nothing balance", () => {
  const nothing = { published: 0, visits: [], isDelivered: () => false, deadLettered: 0, queued: 0 }
  expect(balance(nothing)).toMatchObject({ delivered: 0, missing: 0, balanced: true })
})

test("a message taken by the receiver while the dispatcher was interrupted is counted where the broker has it", () => {
  const books = balance({ ...sound, queued: 2, isDelivered: (id) => id !== "a" })
  expect(books).toMatchObject({ delivered: 2, queued: 2, unconfirmed: 1, balanced: true })
})

describe("an imbalance is found, whatever is falsified", () => {
  const falsified: Record<string, readonly [Partial<Sources>, missing: number]> = {
    "a published message too many": [{ published: 7 }, 1],
    "a published message too few": [{ published: 5 }, -1],
    "a delivery that was lost": [{ visits: sound.visits.slice(1) }, 1],
    "a delivery of a message nobody published": [{ visits: [...sound.visits, visit("x")] }, -1],
    "a lost dead letter": [{ deadLettered: 1 }, 1],
    "a dead letter twice": [{ deadLettered: 3 }, -1],
    "a lost queued message": [{ queued: 0 }, 1],
    "a delivered message that is still queued": [{ queued: 2 }, -1],
    "an unconfirmed message that the broker lost": [{ isDelivered: (id) => id !== "a" }, 1]
  }
  test.each(Object.entries(falsified))("%s", (_, [change, missing]) => {
    expect(balance({ ...sound, ...change })).toMatchObject({ missing, balanced: false })
  })
})
