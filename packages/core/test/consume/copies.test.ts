/** What is remembered of a copy, and which redelivery gets it. The decisions themselves are tested with `Lifecycle`. */
import { assert, it } from "@effect/vitest"
import * as Copies from "../../src/consume/internal/copies.ts"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery } from "../items.ts"

const acked: Lifecycle.Decision = {
  settlement: Settlement.Ack,
  due: 0,
  losses: 0,
  tryAt: 0,
  isBegun: true,
  isDone: false,
  kept: undefined
}
const lost = (id: string, decision: Lifecycle.Decision | undefined, attempts = 1): Lifecycle.Memory => ({
  id,
  attempts,
  brokerAttempts: attempts,
  decision,
  isLost: true
})
const again = (id: string, attempts = 2) => delivery(id, { attempts })
const make = (isBound = true) => Copies.make(({ receipt }) => receipt as string, isBound)
const priorOf = (recalled: ReturnType<Copies.Copies["recall"]>) =>
  typeof recalled === "object" ? recalled.history.prior?.settlement : recalled

it("a settlement is repeated once, on the redelivery of the same copy, and costs no attempt", () => {
  const copies = make()
  copies.remember(delivery("a"), lost("a", acked))
  assert.isUndefined(copies.recall(again("b")))
  assert.deepStrictEqual(copies.recall(again("a")), {
    delivery: { ...delivery("a", { attempts: 1 }), native: undefined },
    history: { ...Lifecycle.ordinary, uncounted: 1, prior: acked }
  })
  assert.isUndefined(copies.recall(again("a", 3)))
})

it("two copies of one name cannot be distinguished, so neither is settled without a run", () => {
  for (const [first, second] of [
    [acked, undefined],
    [undefined, acked]
  ]) {
    const copies = make()
    copies.remember(delivery("a"), lost("a", first))
    copies.remember(delivery("a"), lost("a", second))
    assert.isUndefined(priorOf(copies.recall(again("a"))))
    assert.isUndefined(copies.recall(again("a")))
  }
})

it("a copy without a name is not remembered", () => {
  const copies = Copies.make(() => undefined, true)
  copies.remember(delivery("a"), lost("a", acked))
  assert.isUndefined(copies.recall(again("a")))
})

it("another message of the same name is not the one that was lost", () => {
  const copies = Copies.make(() => "all of them", true)
  copies.remember(delivery("a"), lost("a", acked))
  assert.isUndefined(copies.recall(again("b")))
})

it("attempts that were noted make a later loss no less sure", () => {
  const copies = make()
  copies.remember(delivery("a"), { ...lost("a", undefined), isLost: false })
  copies.remember(delivery("a"), lost("a", acked))
  assert.strictEqual(priorOf(copies.recall(again("a"))), Settlement.Ack)
})

it("a delivery that was sent before the remembered one is older, unless the count of attempts may have restarted", () => {
  for (const [isBound, expected] of [
    [false, "older"],
    [true, Settlement.Ack]
  ] as const) {
    const copies = make(isBound)
    copies.remember(delivery("a"), lost("a", acked, 3))
    assert.deepStrictEqual(priorOf(copies.recall(again("a", 2))), expected)
  }
})
