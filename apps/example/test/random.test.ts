import { expect, test } from "vitest"
import { draw, uuid } from "../src/random.ts"

test("a draw depends on the seed and on every part, and on nothing else", () => {
  expect(draw(7, "a", 1)).toBe(draw(7, "a", 1))
  const draws = [
    draw(7, "a", 1),
    draw(8, "a", 1),
    draw(7, "b", 1),
    draw(7, "a", 2),
    draw(7, "a1"),
    draw(7, "a", "1", "")
  ]
  expect(new Set(draws).size).toBe(draws.length)
})

test("draws are spread evenly from 0 to 1", () => {
  const tenths = Array.from({ length: 10 }, () => 0)
  for (let i = 0; i < 10_000; i++) tenths[Math.floor(draw(1, "x", i) * 10)]!++
  for (const count of tenths) {
    expect(count).toBeGreaterThan(900)
    expect(count).toBeLessThan(1100)
  }
})

test("a uuid has the form of RFC 9562, and 10,000 of them are distinct", () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => uuid(1, "delivery", i))
  expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(new Set(ids).size).toBe(10_000)
})
