/** Leases of the strict proxy, on a clock of their own. */
import { assert, test } from "vitest"
import * as Leases from "../src/sqs/strict/leases.ts"

test("a redelivery ends the earlier lease, though it lasts longer by this clock: the server's began before its answer arrived", () => {
  let now = 0
  const leases = Leases.make(() => now)
  const change = { action: "ChangeMessageVisibility", queue: "q", body: {} } as never // Only these members are read.
  leases.delivered("m", "first", "q", 1)
  now = 900
  assert.isFalse(leases.isDone(change, { ReceiptHandle: "first" }))
  leases.delivered("m", "second", "q", 60)
  assert.isTrue(leases.isDone(change, { ReceiptHandle: "first" }))
  assert.isFalse(leases.isDone(change, { ReceiptHandle: "second" }))
  assert.strictEqual(leases.inFlight("q"), 1)
})
