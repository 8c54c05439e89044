import { assert, it } from "@effect/vitest"
import * as Remembered from "../../src/consume/internal/remembered.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery, item } from "../items.ts"

const lost = (id: string, settlement?: Settlement.Settlement, attempts = 1) => ({
  ...item(id, 0, { attempts }),
  brokerAttempts: attempts,
  settlement
})
const again = (id: string, attempts = 2) => delivery(id, { attempts })
const make = () => Remembered.make(({ receipt }) => receipt as string)

it("a settlement is repeated once, on the redelivery of the same copy, and costs no attempt", () => {
  const remembered = make()
  remembered.add(lost("a", Settlement.Ack))
  assert.isUndefined(remembered.take(again("b")))
  assert.deepStrictEqual(remembered.take(again("a")), {
    delivery: { ...delivery("a", { attempts: 1 }), native: undefined },
    decided: { priorSettlement: Settlement.Ack, due: 0, losses: 0, tryAt: 0 }
  })
  assert.isUndefined(remembered.take(again("a", 3)))
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
    remembered.add(lost("a", undefined, told))
    const known = remembered.take(again("a", then))
    assert.deepStrictEqual([known?.delivery.attempts, known?.decided.priorSettlement], [expected, undefined])
  }
})

it("a delivery that continues another one tells the broker's facts, also by a getter of its class", () => {
  class Told {
    constructor() {
      Object.assign(this, again("a", 5))
    }
    get native() {
      return { memory: {} }
    }
  }
  const remembered = make()
  remembered.add(lost("a"))
  assert.deepStrictEqual(remembered.take(new Told() as never)?.delivery.native, { memory: {} })
})

it("a retry waits for the rest of its delay", () => {
  for (const [left, delay] of [
    [600, 600],
    [-1000, 0],
    [10_000, 1000]
  ] as const) {
    assert.deepStrictEqual(Remembered.remaining(Settlement.Retry(1000), left), Settlement.Retry(delay, undefined))
  }
})

it("a release is no decision, and leaves what was decided before it, until the broker has taken that", () => {
  const remembered = make()
  const released = { ...lost("a", Settlement.Release()), priorSettlement: Settlement.Ack, losses: 1, due: 5, tryAt: 7 }
  for (const remember of [remembered.add, remembered.note]) {
    remember(lost("a", Settlement.Release()))
    assert.isUndefined(remembered.take(again("a"))?.decided.priorSettlement)
    remember(released)
    assert.deepStrictEqual(remembered.take(again("a"))?.decided, {
      priorSettlement: Settlement.Ack,
      losses: 1,
      due: 5,
      tryAt: 7
    })
  }
  remembered.note({ ...lost("a", Settlement.Retry(0)), priorSettlement: Settlement.Retry(0) })
  assert.isUndefined(remembered.take(again("a"))?.decided.priorSettlement)
})

it("two copies of one name cannot be told apart, so that neither is settled without a run", () => {
  for (const [first, second] of [
    [lost("a", Settlement.Ack), lost("a")],
    [lost("a"), lost("a", Settlement.Ack)]
  ] as const) {
    const remembered = make()
    remembered.add(first)
    remembered.add(second)
    assert.isUndefined(remembered.take(again("a"))?.decided.priorSettlement)
    assert.isUndefined(remembered.take(again("a"))?.decided.priorSettlement)
  }
})

it("what the broker cannot name is not remembered", () => {
  const remembered = Remembered.make(() => undefined)
  remembered.add(lost("a", Settlement.Ack))
  assert.isTrue(remembered.isEmpty())
})

it("a name that is given twice is no proof: another message of it is not taken for the one that was lost", () => {
  const remembered = Remembered.make(() => "all of them")
  remembered.add(lost("a", Settlement.Ack))
  assert.isUndefined(remembered.take(again("b")))
})

it("attempts that were noted make a later loss no less sure", () => {
  const remembered = make()
  const noted = { ...lost("a", undefined, 1), brokerAttempts: 3 }
  remembered.note(noted)
  remembered.add(lost("a", Settlement.Ack, 4))
  assert.strictEqual(remembered.take(again("a", 5))?.decided.priorSettlement, Settlement.Ack)
  remembered.note(noted)
  assert.deepStrictEqual(remembered.take(again("a", 4))?.delivery.attempts, 2)
})
