/** The pure translations between the port and rows. */
import { assert, describe, it } from "@effect/vitest"
import { Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as fc from "fast-check"
import * as SqlCommand from "../src/SqlCommand.ts"
import * as SqlMessage from "../src/SqlMessage.ts"

const now = 1_700_000_000_000

const row = (change: Partial<SqlMessage.Row> = {}): SqlMessage.Row => ({
  seq: 7,
  token: 1,
  deliveries: 1,
  at: now,
  metadata: null,
  headers: null,
  body: new Uint8Array(3),
  ...change
})

const read = (change?: Partial<SqlMessage.Row>) => SqlMessage.toDelivery(row(change), "mine")

describe("a row", () => {
  it("reads what toRow wrote", () =>
    fc.assert(
      fc.property(fc.uint8Array(), fc.string({ minLength: 1, maxLength: 200 }), fc.nat(1000), (body, id, attempts) => {
        const metadata = { ...Metadata.make(id, now), attempts }
        const message = { ...Outgoing.make({ queue: "orders", id, body, headers: { a: id }, delay: 5 }, now), metadata }
        const { create, delay, queue, ...stored } = SqlMessage.toRow(message, now)
        const delivery = read({ ...stored, deliveries: 2 })
        assert.deepStrictEqual([queue, create, delay], ["orders", true, 5])
        const expected = { body, headers: { a: id }, attempts: attempts + 2, metadata, redelivered: true }
        assert.deepStrictEqual(delivery, expected)
      })
    ))

  it("takes a foreign message as it is, under an id that stays the same", () => {
    const [one, again] = [read(), read({ deliveries: 2 })]
    assert.deepStrictEqual([one.metadata.id, one.attempts, one.redelivered], ["mine-7", 1, false])
    assert.deepStrictEqual([again.metadata.id, again.attempts, again.redelivered], ["mine-7", 2, true])
  })

  it.each(["{", "[]", "1", "null", '{"a":1}'])("reports headers that another program wrote wrongly: %s", (headers) =>
    assert.strictEqual(read({ headers }).unreadable?.name, "InvalidHeaders")
  )
})

describe("a command", () => {
  const message = Outgoing.make({ queue: "orders", id: "m", body: new Uint8Array(), headers: {}, delay: 0 }, now)
  const delivery = { ...read(SqlMessage.toRow(message, now)), receipt: undefined }
  const failed = { name: "Error", message: "no" }

  it.each([
    ["ack", Settlement.Ack, "Remove"],
    ["drop", Settlement.Drop("dropped", failed), "Remove"],
    ["retry at once", Settlement.Retry(0), "Replace orders, 1 attempt, after 0 ms"],
    ["retry later", Settlement.Retry(999), "Replace orders, 1 attempt, after 999 ms"],
    ["dead letter", Settlement.DeadLetter("permanent", "o.dlq", failed), "Replace o.dlq, 0 attempt, after 0 ms"],
    ["release", Settlement.Release(), "GiveBack"],
    ["release until later", Settlement.Release(5), "Replace orders, 0 attempt, after 5 ms"]
  ] as const)("%s", (_, settlement, expected) => {
    const command = SqlCommand.of(delivery, settlement, "orders", now)
    const attempts = "metadata" in command ? Metadata.decode(command.metadata!)?.attempts : undefined
    const shown = "delay" in command ? ` ${command.queue}, ${attempts} attempt, after ${command.delay} ms` : ""
    assert.strictEqual(`${command._tag}${shown}`, expected)
  })
})
