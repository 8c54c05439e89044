import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Contained from "../../src/observe/internal/contained.ts"
import type * as Telemetry from "../../src/observe/Telemetry.ts"
import * as Promises from "../promises.ts"

it.each(Promises.foreign)("telemetry's promise %s may be rejected: that is a defect that is told", async (_, make) => {
  const down = new Error("the collector is down")
  const defects: Array<unknown> = []
  const onEvent: () => any = () => make(Promise.reject(down)) // What it answers is nothing, by the types.
  const telemetry = { consumer: () => ({ onEvent }) } as unknown as Telemetry.Service // Nothing else is called.
  const about: Telemetry.About = {
    broker: "scripted",
    queue: "q",
    now: () => 0,
    health: () => assert.fail("nobody asks"),
    connection: () => assert.fail("nobody asks"),
    counts: Effect.never
  }
  Contained.watch(telemetry, about, (error) => defects.push(error))?.onEvent({
    _tag: "BackoffLeft",
    queue: "q",
    because: "broker"
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepStrictEqual(defects, [down])
})
