import { expect, test } from "vitest"
import { type Reply, replyOf, names, subscriberOf } from "../src/endpoints.ts"
import { uuid } from "../src/random.ts"

/** How many answers of each kind a thousand messages get that are tried up to 6 times. */
const outcomes = (seed: number) => {
  const counts: Partial<Record<Reply["_tag"] | "gaveUp", number>> = {}
  for (let i = 0; i < 1000; i++) {
    const id = uuid(seed, "delivery", i)
    for (let attempt = 1; attempt <= 6; attempt++) {
      const { _tag } = replyOf(seed, subscriberOf(seed, id), id, attempt, false)
      counts[_tag] = (counts[_tag] ?? 0) + 1
      if (_tag === "Accept" || _tag === "Gone") break
      if (attempt === 6) counts.gaveUp = (counts.gaveUp ?? 0) + 1
    }
  }
  return counts
}

test("a seed decides every outcome", () => {
  expect(outcomes(7)).toEqual(outcomes(7))
  expect(outcomes(8)).not.toEqual(outcomes(7))
})

test("every kind of misbehaviour happens", () => {
  const counts = outcomes(1)
  for (const kind of ["Accept", "Fail", "Busy", "Stall", "HangUp", "Gone", "gaveUp"] as const) {
    expect({ kind, count: counts[kind] ?? 0 }).not.toEqual({ kind, count: 0 })
  }
})

test("a subscriber that is down never answers 2xx, one that moved always 410, one that is healed always 2xx", () => {
  for (let i = 0; i < 100; i++) {
    expect(replyOf(1, "billing", String(i), 1, false)._tag).not.toBe("Accept")
    expect(replyOf(1, "moved", String(i), 1, false)._tag).toBe("Gone")
    for (const name of names) expect(replyOf(1, name, String(i), 1, true)._tag).toBe("Accept")
  }
})
