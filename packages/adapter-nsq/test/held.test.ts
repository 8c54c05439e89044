/** What a session holds is found by the id of its message, however much that is. */
import { assert, test } from "vitest"
import * as Held from "../src/internal/consume/held.ts"
import type { Receipt, SettlingSession } from "../src/internal/consume/receipt.ts"

test("a redelivery, a copy that failed and a refusal cost the same with thousands in flight", () => {
  const count = 2000
  let asked = 0
  let lost = 0
  const receiptOf = (id: number, deliveries: number): Receipt => ({
    session: {} as SettlingSession, // not used
    get id() {
      asked++
      return `${id}`
    },
    name: "",
    deliveries,
    nonce: undefined,
    receivedAt: 0,
    leaseEnds: 1000
  })
  const identity = { msgTimeout: 1000, maxMsgTimeout: 2000 }
  const held = Held.make({ identity, isOpen: () => true, elapsed: () => 0, onLost: () => lost++ })
  for (let id = 0; id < count; id++) assert.isTrue(held.add(receiptOf(id, 1)))
  const again = Array.from({ length: count }, (_, id) => receiptOf(id, 2))
  for (const receipt of again) assert.isFalse(held.add(receipt))
  for (const receipt of again) assert.isTrue(held.take(receipt) && held.untake(receipt))
  for (const receipt of again) assert.isTrue(held.lose(receipt.id))
  // A refused delivery counts until the core is told.
  assert.strictEqual(lost, 0)
  for (const receipt of again) assert.isFalse(held.extend(receipt) || held.take(receipt))
  assert.isAtMost(asked, 20 * count)
  assert.deepStrictEqual([held.size(), lost], [0, count])
})
