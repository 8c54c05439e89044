import { expect, it } from "vitest"
import * as Generate from "../src/Generate.ts"
import * as Machine from "../src/world/Machine.ts"
import * as Parcels from "../src/world/Parcels.ts"
import * as World from "../src/world/World.ts"

it("all deliveries of a copy are alike, and each has a number that its handler sees", () => {
  const world = World.make(Generate.scenario(1))
  const machine = Machine.make(world, "a1", Machine.trueClock)
  const parcel = { body: new Uint8Array([1]), headers: { key: "1" }, metadata: undefined, nonce: undefined }
  const [first, second] = [1, 2].map((delivery) =>
    Parcels.toDelivery(parcel, machine, { delivery, count: delivery, receipt: undefined })
  )
  expect(first!.headers).toEqual(second!.headers)
  expect(first!.body).toBe(second!.body)
  expect([first!, second!].map(Parcels.deliveryOf)).toEqual([1, 2])
})
