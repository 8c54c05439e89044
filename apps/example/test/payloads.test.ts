import { expect, test } from "vitest"
import { isEndpoint, names } from "../src/endpoints.ts"
import { examples, webhook } from "../src/payloads.ts"

test("the examples are GitHub's own: every one once, with the name of its event", () => {
  expect(examples.length).toBe(329)
  expect(new Set(examples.map(({ event }) => event)).size).toBe(58)
})

test("a message is the same for the same seed, and its id differs for another", () => {
  expect(webhook(7, 3)).toEqual(webhook(7, 3))
  expect(webhook(8, 3).id).not.toBe(webhook(7, 3).id)
})

test("the examples come round again under new ids", () => {
  const [first, again] = [webhook(7, 0), webhook(7, examples.length)]
  expect(again.body).toBe(first.body)
  expect(again.id).not.toBe(first.id)
})

test("every message has a subscriber, and every subscriber has messages", () => {
  const subscribers = Array.from({ length: 1000 }, (_, i) => webhook(1, i).headers["x-webhook-endpoint"]!)
  expect(subscribers.every(isEndpoint)).toBe(true)
  expect(new Set(subscribers).size).toBe(names.length)
})
