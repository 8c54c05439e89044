import type { Event } from "@requeue/core/promise"
import { expect, test } from "vitest"
import { makeLedger, turn } from "../src/ledger.ts"

const subject = (id: string, attempts: number) => ({ queue: "webhooks", id, attempts })
const error = { name: "Error", message: "chat answered 500" }

const received = (id: string, attempts = 1): Event => ({ _tag: "Received", ...subject(id, attempts) })
const succeeded = (id: string, attempts = 1): Event => ({ _tag: "Succeeded", ...subject(id, attempts) })
const failed = (id: string, attempts = 1): Event => ({
  _tag: "AttemptFailed",
  ...subject(id, attempts),
  error,
  willRerun: false
})
const retried = (id: string, attempts: number, delay: number): Event => ({
  _tag: "RetryScheduled",
  ...subject(id, attempts),
  delay,
  error
})
const dead = (id: string, attempts: number): Event => ({
  _tag: "DeadLettered",
  ...subject(id, attempts),
  reason: "retries-exhausted",
  target: "webhooks.dlq",
  error
})

const ledgerOf = (events: ReadonlyArray<Event>, now = () => 0) => {
  const ledger = makeLedger(now)
  for (const event of events) ledger.onEvent(event)
  return ledger
}

test("a message is in one place at a time", () => {
  const ledger = ledgerOf([
    received("a"),
    received("b"),
    received("c"),
    received("d"),
    succeeded("a"),
    failed("b"),
    retried("b", 1, 200),
    failed("c"),
    dead("c", 1)
  ])
  const places = ["in flight", "delivered", "retrying", "dead", "queued", "dropped"] as const
  expect(places.map(ledger.count)).toEqual([1, 1, 1, 1, 0, 0])
  expect(ledger.ended()).toBe(2)
  expect([ledger.isDelivered("a"), ledger.isDelivered("b"), ledger.isDelivered("x")]).toEqual([true, false, false])
})

test("a retry is due the delay after its failure, not after the broker took it", () => {
  let now = 1000
  const ledger = makeLedger(() => now)
  ledger.onEvent(failed("a"))
  now = 1007
  ledger.onEvent(retried("a", 1, 200))
  expect(ledger.due.get(turn("a", 2))).toBe(1200)
  expect(ledger.retries()).toBe(1)
  expect(ledger.latest()).toBe("chat answered 500; retry 1 in 0.2 s")
})

test("a retry that is received before its scheduling is told stays in flight", () => {
  const ledger = ledgerOf([received("a"), failed("a"), received("a", 2), retried("a", 1, 0)])
  expect([ledger.count("in flight"), ledger.count("retrying")]).toEqual([1, 0])
})

test("a message that was given back is queued again", () => {
  const ledger = ledgerOf([received("a"), { _tag: "Released", ...subject("a", 1), delay: 0 }])
  expect([ledger.count("in flight"), ledger.count("queued")]).toEqual([0, 1])
})

test("a handler run whose time was up is told from other failures", () => {
  const timeout: Event = {
    _tag: "AttemptFailed",
    ...subject("b", 1),
    error: { name: "HandlerTimeout", message: "" },
    willRerun: false
  }
  expect(ledgerOf([failed("a"), timeout]).timedOut()).toBe(1)
})

test("the attempts after which messages ended are counted", () => {
  const ledger = ledgerOf([succeeded("a"), succeeded("b"), succeeded("c", 3), dead("d", 6)])
  expect([...ledger.attempts]).toEqual([
    [1, { delivered: 2, deadLettered: 0 }],
    [3, { delivered: 1, deadLettered: 0 }],
    [6, { delivered: 0, deadLettered: 1 }]
  ])
})
