import { assert, it } from "@effect/vitest"
import * as Remembered from "../../src/consume/internal/remembered.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery, item } from "../items.ts"

const lost = (id: string, settlement?: Settlement.Settlement, attempts = 1) => ({
  ...item(id, 0, { attempts }),
  told: attempts,
  settlement
})
const again = (id: string, attempts = 2) => delivery(id, { attempts })
const make = () => Remembered.make(({ receipt }) => receipt as string)

it("a settlement is repeated once, on the redelivery of the same copy, and costs no attempt", () => {
  const remembered = make()
  remembered.add(lost("a", Settlement.Ack), 0, 0)
  assert.isUndefined(remembered.take(again("b"), 0))
  assert.deepStrictEqual(remembered.take(again("a"), 0), {
    delivery: delivery("a", { attempts: 1 }),
    settlement: Settlement.Ack,
    losses: 0
  })
  assert.isUndefined(remembered.take(again("a", 3), 0))
  assert.isTrue(remembered.isEmpty())
})

it("a delivery that no handler had begun has cost no attempt; those in between, of others, have", () => {
  const remembered = make()
  for (const [told, then, expected] of [
    [1, 2, 1],
    [1, 1, 1],
    [1, 5, 4],
    [3, 4, 3]
  ] as const) {
    remembered.add(lost("a", undefined, told), 0, 0)
    const known = remembered.take(again("a", then), 0)
    assert.deepStrictEqual([known?.delivery.attempts, known?.settlement], [expected, undefined])
  }
})

it("a retry waits for the rest of its delay, and a release is no decision", () => {
  const remembered = make()
  for (const [later, left] of [
    [400, 600],
    [2000, 0],
    [-9000, 1000]
  ] as const) {
    remembered.add(lost("a", Settlement.Retry(1000)), 1000, 10_000)
    assert.deepStrictEqual(remembered.take(again("a"), 10_000 + later)?.settlement, Settlement.Retry(left, undefined))
  }
  remembered.add(lost("a", Settlement.Release()), 0, 0)
  assert.isUndefined(remembered.take(again("a"), 0)?.settlement)
})

it("two copies of one name cannot be told apart, so that neither is settled without a run", () => {
  for (const [first, second] of [
    [lost("a", Settlement.Ack), lost("a")],
    [lost("a"), lost("a", Settlement.Ack)]
  ] as const) {
    const remembered = make()
    remembered.add(first, 0, 0)
    remembered.add(second, 0, 0)
    assert.isUndefined(remembered.take(again("a"), 0)?.settlement)
    assert.isUndefined(remembered.take(again("a"), 0)?.settlement)
  }
})

it("what the broker cannot name is not remembered", () => {
  const remembered = Remembered.make(() => undefined)
  remembered.add(lost("a", Settlement.Ack), 0, 0)
  assert.isTrue(remembered.isEmpty())
})

it("a name that is given twice is no proof: another message of it is not taken for the one that was lost", () => {
  const remembered = Remembered.make(() => "all of them")
  remembered.add(lost("a", Settlement.Ack), 0, 0)
  assert.isUndefined(remembered.take(again("b"), 0))
})

it("attempts that were noted make a later loss no less sure", () => {
  const remembered = make()
  const noted = { ...lost("a", undefined, 1), told: 3 }
  remembered.note(noted)
  remembered.add(lost("a", Settlement.Ack, 4), 0, 0)
  assert.strictEqual(remembered.take(again("a", 5), 0)?.settlement, Settlement.Ack)
  remembered.note(noted)
  assert.deepStrictEqual(remembered.take(again("a", 4), 0)?.delivery.attempts, 2)
})
