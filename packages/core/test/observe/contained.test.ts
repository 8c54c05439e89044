import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { AsyncLocalStorage } from "node:async_hooks"
import * as AsyncContext from "../../src/runtime/AsyncContext.ts"
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
  Contained.watch(telemetry, about, AsyncContext.capture(), (error) => defects.push(error))?.onEvent({
    _tag: "BackoffLeft",
    queue: "q",
    because: "broker"
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepStrictEqual(defects, [down])
})

it("telemetry's functions run in the consumer's async context, and a handler in the one that telemetry sets inside it", () => {
  const storage = new AsyncLocalStorage<string>()
  const seen: Array<string | undefined> = []
  const see = () => void seen.push(storage.getStore())
  const run: Telemetry.Run = { within: (handler) => storage.run("telemetry", handler), end: see }
  const watch: Telemetry.Watch = {
    onEvent: see,
    run: () => {
      see()
      return run
    },
    settle: (_, settle) => {
      see()
      return settle
    },
    close: see
  }
  const service = { consumer: () => watch } as unknown as Telemetry.Service // Nothing is sent.
  const within = storage.run("consumer", AsyncContext.capture)
  const contained = Contained.watch(service, {} as Telemetry.About, within, (error) => assert.fail(String(error)))! // Nobody asks.
  storage.run("another message", () => {
    contained.onEvent({ _tag: "BackoffLeft", queue: "q", because: "broker" })
    const started = contained.run([], 0)
    within(() => started.within(see))
    started.end({ _tag: "Succeeded" })
    contained.settle([], Effect.succeed([]))
    contained.close()
  })
  assert.deepStrictEqual(seen, ["consumer", "consumer", "telemetry", "consumer", "consumer", "consumer"])
})
