/** The way of an operator: from the overview to letters that are redriven. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as World from "./world.ts"

describe("an operator", () => {
  it.effect("sees what waits in each queue, and why a number is not known", () =>
    Effect.gen(function* () {
      const { get, publish } = yield* World.make()
      yield* publish({ id: "order-1" }, { id: "order-2" })
      const { status, text } = yield* get("/")
      assert.strictEqual(status, 200)
      assert.match(
        text,
        /orders[\s\S]*data-label="dead"><svg[^>]*><\/svg><a href="\/dead-letters\?broker=local&amp;queue=orders.dlq">2<\/a>/
      )
      assert.match(text, /– quarantined: kept by consumer processes/)
    })
  )

  it.effect("goes from the overview to all redriven in four clicks", () =>
    Effect.gen(function* () {
      const { audit, broker, follow, get, publish, settled, submit } = yield* World.make()
      yield* publish({ id: "order-1" }, { id: "order-2" }, { id: "order-3", error: "no sku" })
      const handled: Array<string> = []
      yield* Effect.provideService(
        Consumer.start("orders", {}, ({ id }) => void handled.push(id)),
        Broker.Broker,
        broker
      )
      const overview = yield* get("/")
      const causes = yield* settled(World.linkTo(overview, "/dead-letters"))
      assert.match(causes.text, /<a[^>]*>Error: &lt;num&gt; from the shop<\/a>/)
      const cause = yield* get(World.linkTo(causes, "/group"))
      assert.match(cause.text, /All 2 letters/)
      const planned = yield* submit(cause, "/plan")
      const plan = yield* settled(planned.headers.get("location")!)
      assert.match(
        plan.text,
        /would be redriven<\/dt><dd><span class="strong">2<.*of other causes<\/dt><dd><span class="strong">1</
      )
      const begun = yield* submit(plan, "/redrive", { how: "stages" })
      yield* follow(begun)
      const done = yield* settled(begun.headers.get("location")!)
      assert.match(done.text, /succeeded<\/dt><dd><span class="strong">2</)
      assert.deepStrictEqual(handled, ["order-1", "order-2"])
      assert.deepStrictEqual(
        audit.filter(({ event }) => event !== "letter").map(({ command, event, outcome }) => [command, event, outcome]),
        [
          ["console plan", "begin", undefined],
          ["console plan", "end", "done"],
          ["console redrive", "begin", undefined],
          ["console redrive", "end", "done"]
        ]
      )
      const left = yield* settled(World.linkTo(done, "/dead-letters"))
      assert.match(left.text, /Browsed all 1 letter/)
    })
  )

  it.effect("reads a letter, and its body when asked for it", () =>
    Effect.gen(function* () {
      const { audit, get, publish, settled, submit } = yield* World.make()
      yield* publish({
        id: "order-1",
        body: `{"sku":"tea","password":"hunter2"}`,
        headers: { tenant: "acme", cookie: "a=1" }
      })
      const causes = yield* settled(World.deadLetters)
      const cause = yield* get(World.linkTo(causes, "/group"))
      const letter = yield* get(World.linkTo(cause, "/letter"))
      assert.match(letter.text, /acme/)
      assert.notInclude(letter.text, "a=1")
      assert.notInclude(letter.text, "tea")
      const shown = yield* submit(letter, "/letter")
      assert.include(World.decoded(shown.text), `"sku": "tea"`)
      assert.notInclude(shown.text, "hunter2")
      assert.deepStrictEqual(
        audit.map(({ command, event }) => [command, event]),
        [
          ["console body", "begin"],
          ["console body", "end"]
        ]
      )
    })
  )
})
