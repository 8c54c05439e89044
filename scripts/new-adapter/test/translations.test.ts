/** The pure translations between the port and Acme. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as fc from "fast-check"
import { capabilities } from "../src/internal/capabilities.ts"
import type { Received } from "../src/internal/client.ts"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import { toPublication } from "../src/internal/publish/toPublication.ts"
import { toCommand } from "../src/internal/settle/toCommand.ts"
import { toBrokerError } from "../src/internal/toBrokerError.ts"

const now = 1_700_000_000_000

const outgoing = (change: Partial<Outgoing.Outgoing> = {}): Outgoing.Outgoing => ({
  ...Outgoing.make({ queue: "orders", id: "m1", body: new Uint8Array(3), headers: { tenant: "a" }, delay: 0 }, now),
  ...change
})

const received = (change: Partial<Received> = {}): Received => ({
  id: "7",
  body: new Uint8Array(3),
  headers: {},
  deliveries: 1,
  publishedAt: now,
  ...change
})

const publication = (message: Outgoing.Outgoing) => {
  const made = toPublication(message)
  if (made instanceof BrokerError.BrokerError) throw made
  return made
}

describe("toPublication", () => {
  it("says how long the message is to wait", () =>
    assert.strictEqual(publication(outgoing({ delay: 5000 })).delay, 5000))

  it.each([
    ["at the limit", capabilities.maxBodySize, undefined],
    ["over the limit", capabilities.maxBodySize + 1, "BodyTooLarge"]
  ] as const)("of a body %s", (_, size, reason) => {
    const made = toPublication(outgoing({ body: new Uint8Array(size) }))
    assert.strictEqual(made instanceof BrokerError.BrokerError ? made.reason : undefined, reason)
  })
})

describe("toDelivery", () => {
  it("reads what toPublication wrote", () =>
    fc.assert(
      fc.property(fc.uint8Array(), fc.string({ minLength: 1 }), fc.nat(1000), (body, id, attempts) => {
        const metadata = { ...Metadata.make(id, now), attempts }
        const { headers } = publication(outgoing({ body, metadata }))
        const read = toDelivery(received({ body, headers, deliveries: 2 }))
        assert.deepStrictEqual(read, { body, headers: { tenant: "a" }, attempts: attempts + 2, metadata })
      })
    ))

  it("takes a foreign message as it is, under an id that stays the same", () => {
    const headers = { [Metadata.header]: "not ours" }
    const [one, again] = [toDelivery(received({ headers })), toDelivery(received({ headers, deliveries: 2 }))]
    assert.deepStrictEqual([one.metadata.id, one.attempts, one.headers], ["acme-7", 1, headers])
    assert.deepStrictEqual([again.metadata.id, again.attempts], ["acme-7", 2])
  })
})

describe("toCommand", () => {
  const delivery = { ...toDelivery(received({ headers: publication(outgoing()).headers })), receipt: undefined }
  const failed = { name: "Error", message: "no" }

  it.each([
    ["ack", Settlement.Ack, "Remove"],
    ["drop", Settlement.Drop("dropped", failed), "Remove"],
    ["retry at once", Settlement.Retry(0), "Copy orders, 1 attempt, after 0 ms"],
    ["retry later", Settlement.Retry(999), "Copy orders, 1 attempt, after 999 ms"],
    ["dead letter", Settlement.DeadLetter("permanent", "orders.dlq", failed), "Copy orders.dlq, 0 attempt, after 0 ms"],
    ["release", Settlement.Release(), "Requeue"],
    ["release until later", Settlement.Release(5), "Copy orders, 0 attempt, after 5 ms"]
  ] as const)("%s", (_, settlement, expected) => {
    const command = toCommand(delivery, settlement, "orders", now)
    const copy = "outgoing" in command ? command.outgoing : undefined
    const shown = copy && ` ${copy.queue}, ${copy.metadata.attempts} attempt, after ${copy.delay} ms`
    assert.strictEqual(`${command._tag}${shown ?? ""}`, expected)
  })
})

describe("toBrokerError", () => {
  it.each([
    ["connect ECONNREFUSED 127.0.0.1:1", "ConnectionFailed"],
    ["access denied", "AccessRefused"],
    ["message too large", "BodyTooLarge"],
    ["no such queue", "QueueMissing"],
    ["socket hang up", "ConnectionLost"]
  ] as const)("%s is %s", (text, reason) => {
    const error = toBrokerError(new Error(text), { operation: "publish", queue: "orders" })
    assert.deepStrictEqual([error.reason, error.queue, error.detail], [reason, "orders", text])
  })

  it("leaves an error alone that is one already", () => {
    const error = toBrokerError(new Error("no"), { operation: "publish" })
    assert.strictEqual(toBrokerError(error, { operation: "settle" }), error)
  })
})
