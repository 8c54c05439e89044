import { assert, it } from "@effect/vitest"
import { itemOf } from "../../src/consume/internal/deliveries.ts"
import * as Groups from "../../src/consume/internal/groups.ts"
import { type Item, noneInFlight } from "../../src/consume/internal/item.ts"
import { delivery } from "../items.ts"

it("one whose codec outlasts the batch in front of it stays behind those that waited for that batch", () => {
  const joined: Array<string> = []
  const groups = Groups.make({
    single: false,
    load: noneInFlight(),
    join: (item) => joined.push(item.delivery.metadata.id),
    unwait: () => {},
    giveBack: () => {}
  })
  const [first, second, late] = ["first", "second", "late"].map((id, key) =>
    itemOf(delivery(id, { group: "a" }), 1, key, false)
  ) as [Item, Item, Item]
  groups.arrived(first, false, () => groups.ready(first))
  groups.arrived(second, false, () => groups.ready(second))
  groups.arrived(late, false, () => void (late.stage = "decoding"))
  first.stage = "begun"
  groups.begun([first])
  groups.ended(first, false)
  late.stage = "waiting"
  groups.ready(late)
  assert.deepStrictEqual(joined, ["first", "second", "second", "late"])
})
