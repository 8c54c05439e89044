/** The pure translations between the port and rows. */
import { assert, describe, it } from "@effect/vitest"
import { BrokerError, Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as fc from "fast-check"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import { toRow } from "../src/internal/publish/publisher.ts"
import type { Row } from "../src/internal/rows.ts"
import { toCommand } from "../src/internal/settle/toCommand.ts"
import { toBrokerError } from "../src/internal/toBrokerError.ts"
import { sqliteError } from "./driver.ts"

const now = 1_700_000_000_000

const row = (change: Partial<Row> = {}): Row => ({
  seq: 7,
  token: 1,
  deliveries: 1,
  at: now,
  metadata: null,
  headers: null,
  body: new Uint8Array(3),
  ...change
})

describe("toDelivery", () => {
  it("reads what toRow wrote", () =>
    fc.assert(
      fc.property(fc.uint8Array(), fc.string({ minLength: 1, maxLength: 200 }), fc.nat(1000), (body, id, attempts) => {
        const metadata = { ...Metadata.make(id, now), attempts }
        const message = { ...Outgoing.make({ queue: "orders", id, body, headers: { a: id }, delay: 0 }, now), metadata }
        const { queue, ...stored } = toRow(message, now)
        const read = toDelivery(row({ ...stored, deliveries: 2 }))
        assert.strictEqual(queue, "orders")
        const expected = { body, headers: { a: id }, attempts: attempts + 2, metadata, redelivered: true }
        assert.deepStrictEqual(read, expected)
      })
    ))

  it("takes a foreign message as it is, under an id that stays the same", () => {
    const [one, again] = [toDelivery(row()), toDelivery(row({ deliveries: 2 }))]
    assert.deepStrictEqual([one.metadata.id, one.attempts, one.redelivered], ["sqlite-7", 1, false])
    assert.deepStrictEqual([again.metadata.id, again.attempts, again.redelivered], ["sqlite-7", 2, true])
  })

  it.each(["{", "[]", "1", "null", '{"a":1}'])("reports headers that another program wrote wrongly: %s", (headers) =>
    assert.strictEqual(toDelivery(row({ headers })).unreadable?.name, "InvalidHeaders")
  )
})

describe("toCommand", () => {
  const message = Outgoing.make({ queue: "orders", id: "m", body: new Uint8Array(), headers: {}, delay: 0 }, now)
  const delivery = { ...toDelivery(row(toRow(message, now))), receipt: undefined }
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
    const command = toCommand(delivery, settlement, "orders", now)
    const attempts = "metadata" in command ? Metadata.decode(command.metadata!)?.attempts : undefined
    const shown = "at" in command ? ` ${command.queue}, ${attempts} attempt, after ${command.at - now} ms` : ""
    assert.strictEqual(`${command._tag}${shown}`, expected)
  })
})

describe("toBrokerError", () => {
  it.each([
    [1, "ConnectionFailed", true],
    [3, "AccessRefused", undefined],
    [5, "Throttled", undefined],
    [5 | (1 << 8), "Throttled", undefined],
    [8, "AccessRefused", undefined],
    [10, "ConnectionLost", undefined],
    [11, "ConnectionFailed", true],
    [13, "Throttled", undefined],
    [14, "ConnectionFailed", true],
    [18, "BodyTooLarge", undefined],
    [19, "AccessRefused", undefined],
    [26, "ConnectionFailed", true]
  ] as const)("the code %s is %s", (code, reason, isMisconfigured) => {
    const error = toBrokerError(sqliteError(code, "no"), { operation: "publish", queue: "orders" })
    assert.deepStrictEqual([error.reason, error.isMisconfigured, error.detail], [reason, isMisconfigured, "no"])
    assert.strictEqual(error.remedy === undefined, reason === "ConnectionLost")
  })

  it("names the file that cannot be opened", () =>
    assert.strictEqual(toBrokerError(new Error("no"), { operation: "open", path: "./q.db" }).detail, "./q.db: no"))

  it("leaves an error alone that is one already", () => {
    const error = toBrokerError(new Error("no"), { operation: "publish" })
    assert.strictEqual(toBrokerError(error, { operation: "settle" }), error)
    assert.instanceOf(error, BrokerError.BrokerError)
  })
})
