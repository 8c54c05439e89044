import { assert, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as VirtualTime from "../src/VirtualTime.ts"
import * as Workload from "../src/Workload.ts"
import { broker } from "./fake.ts"

it.live("publishes portion by portion, each until it is confirmed", () =>
  VirtualTime.run(
    Effect.gen(function* () {
      const sent: Array<string> = []
      const refused = new BrokerError.BrokerError({
        broker: "fake",
        operation: "publish",
        reason: "Throttled",
        detail: "not now"
      })
      const publish: typeof broker.publish = (messages) =>
        Effect.suspend(() => {
          sent.push(messages.map(({ metadata }) => metadata.id).join(" "))
          return sent.length === 2 ? Effect.fail(refused) : Effect.void
        })
      yield* Workload.publishAll({ ...broker, publish }, "q", Workload.ids(5), 2)
      assert.deepStrictEqual(sent, ["m0 m1", "m2 m3", "m2 m3", "m4"])
    })
  )
)

it("has messages of every kind", () => {
  const runs = Workload.ids(100).map(Workload.runsOf)
  assert.deepStrictEqual(
    [1, 3, 5].map((count) => runs.filter((each) => each === count).length),
    [80, 18, 2]
  )
  assert.deepStrictEqual(Workload.ids(100, "d").filter(Workload.isDoomed), ["d0", "d50"])
})
