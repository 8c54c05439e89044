import { assert, describe, it } from "@effect/vitest"
import { type Delivery, Metadata } from "@requeue/core"
import * as fc from "fast-check"
import * as MessageGroups from "../src/internal/consume/messageGroups.ts"

const delivery = (group: string, id: string): Delivery.Delivery => ({
  body: new Uint8Array(),
  headers: {},
  attempts: 1,
  metadata: Metadata.make(id, 0),
  receipt: { group }
})

const world = () => {
  const out: Array<string> = []
  const back: Array<string> = []
  const id = ({ metadata }: Delivery.Delivery) => metadata.id
  const groups = MessageGroups.make({
    deliver: (one) => out.push(id(one)),
    giveBack: (some) => back.push(...some.map(id))
  })
  const [a1, a2, a3, b1] = [delivery("a", "a1"), delivery("a", "a2"), delivery("a", "a3"), delivery("b", "b1")]
  for (const one of [a1, a2, b1, a3]) groups.arrived(one)
  return { out, back, groups, a1, a2, a3, b1 }
}

describe("message groups", () => {
  it("one of each is out at a time, in order", () => {
    const { a1, a2, groups, out } = world()
    assert.deepStrictEqual(out, ["a1", "b1"])
    groups.gone(a1)
    groups.gone(a2)
    assert.deepStrictEqual(out, ["a1", "b1", "a2", "a3"])
    assert.deepStrictEqual(groups.waiting(), [])
  })

  it("when the first goes back, those behind it do as well, and no other group", () => {
    const { a1, back, groups, out } = world()
    groups.returned(a1)
    assert.deepStrictEqual(
      [back, out],
      [
        ["a2", "a3"],
        ["a1", "b1"]
      ]
    )
    groups.arrived(delivery("a", "a1 again"))
    assert.strictEqual(out.at(-1), "a1 again")
  })

  it("when none is wanted, those that wait go back, and nobody follows", () => {
    const { a1, back, groups, out } = world()
    groups.clear()
    groups.gone(a1)
    assert.deepStrictEqual(
      [back, out],
      [
        ["a2", "a3"],
        ["a1", "b1"]
      ]
    )
  })

  it("what is not out changes nothing", () => {
    const { a2, back, groups, out } = world()
    groups.gone(a2)
    groups.returned(a2)
    assert.deepStrictEqual([back, out], [[], ["a1", "b1"]])
  })

  it("of a group never two are out, and what comes out is in the order of arrival", () =>
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("arrive", "gone", "returned"), fc.constantFrom("a", "b", "c"))),
        (steps) => {
          let count = 0
          const out = new Map<string, Delivery.Delivery>()
          const order = new Map<string, Array<number>>()
          const groups = MessageGroups.make({
            deliver: (one) => {
              const { group } = one.receipt as { readonly group: string }
              assert.isFalse(out.has(group))
              out.set(group, one)
              order.set(group, [...(order.get(group) ?? []), Number(one.metadata.id)])
            },
            giveBack: () => {}
          })
          for (const [step, group] of steps) {
            if (step === "arrive") groups.arrived(delivery(group, String(++count)))
            const mine = out.get(group)
            if (step === "arrive" || mine === undefined) continue
            out.delete(group)
            groups[step as "gone" | "returned"](mine)
          }
          for (const ids of order.values()) {
            assert.deepStrictEqual(
              ids,
              ids.toSorted((x, y) => x - y)
            )
          }
        }
      )
    ))
})
