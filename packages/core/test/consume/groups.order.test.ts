import { assert, it } from "@effect/vitest"
import * as Groups from "../../src/consume/internal/groups.ts"
import { itemOf } from "../../src/consume/internal/deliveries.ts"
import type { Item } from "../../src/consume/internal/item.ts"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import { delivery, step } from "../items.ts"

it("one whose codec outlasts the batch in front of it stays behind those that waited for that batch", () => {
  const joined: Array<string> = []
  const groups = Groups.make({
    single: false,
    join: (item) => joined.push(item.delivery.metadata.id),
    unwait: () => {},
    giveBack: () => {},
    keepsPlace: () => false
  })
  const [first, second, late] = ["first", "second", "late"].map((id, key) =>
    itemOf(delivery(id, { group: "a" }), Lifecycle.ordinary, key)
  ) as [Item, Item, Item]
  groups.arrived(first, false, () => groups.ready(first))
  groups.arrived(second, false, () => groups.ready(second))
  groups.arrived(late, false, () => void step(late, { _tag: "DecodingStarted" }))
  step(first, { _tag: "Started" })
  groups.begun([first])
  groups.ended(first, false)
  step(late, { _tag: "DecodingEnded" })
  groups.ready(late)
  assert.deepStrictEqual(joined, ["first", "second", "second", "late"])
})

it.each([
  ["a release keeps its place", Settlement.Release(1000), true],
  ["a retry keeps its place", Settlement.Retry(0, undefined), true],
  ["a retry is a copy at the end", Settlement.Retry(0, undefined), false]
])("whether one behind a message without a run joins a batch: %s", (_, settlement, isBack) => {
  const [joined, returned]: [Array<string>, Array<string>] = [[], []]
  const groups = Groups.make({
    single: false,
    join: (item) => joined.push(item.delivery.metadata.id),
    unwait: () => {},
    giveBack: (items) => returned.push(...items.map(({ delivery }) => delivery.metadata.id)),
    keepsPlace: (each) => each === settlement && isBack
  })
  const [early, later] = ["early", "later"].map((id, key) =>
    itemOf(delivery(id, { group: "a" }), Lifecycle.ordinary, key)
  ) as [Item, Item]
  groups.arrived(early, false, () => {
    early.settlement = settlement
    step(early, { _tag: "Concluded", settlement })
  })
  groups.arrived(later, false, () => groups.ready(later))
  assert.deepStrictEqual(joined, isBack ? [] : ["later"])
  groups.ended(early, isBack)
  assert.deepStrictEqual(joined, isBack ? [] : ["later"])
  assert.deepStrictEqual(returned, isBack ? ["later"] : [])
})
