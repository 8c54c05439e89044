/** Events of messages of somebody who means harm, and floods of them. */
import { assert } from "@effect/vitest"
import type { Event } from "@requeue/core"
import * as Effect from "effect/Effect"
import type { Console } from "../../src/index.ts"
import * as Events from "../../src/internal/work/events.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

const evil = `"><script>alert(1)</script>`

const failed = (message: string, id = "order-1"): Event.Event => ({
  _tag: "AttemptFailed",
  queue: "orders",
  id,
  attempts: 1,
  error: { name: "Error", message },
  willRerun: false
})

const dead: Event.Event = {
  _tag: "DeadLettered",
  queue: "orders",
  id: "order-dead",
  attempts: 4,
  reason: "permanent",
  target: "orders.dlq",
  error: { name: "Error", message: "no sku" }
}

const made = (options: Partial<Console.Options>, ...events: ReadonlyArray<Event.Event>) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize: basic, ...options }, {}, ["c0nfigured"])
    const hook = world.console.onEvent("local")
    for (const event of events) hook(event)
    return world
  })

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an event: is shown as text, whoever it quotes", () =>
    Effect.gen(function* () {
      const secret = failed(`${evil} password=hunter2 c0nfigured amqp://ann:hunter2@host/`, `${evil} token=hunter2`)
      const { get } = yield* made({}, secret)
      for (const role of ["view", "bodies", "purge"]) {
        const { text } = yield* get("/events", as(role))
        assert.include(text, "attempt 1 failed")
        assert.notMatch(text, /<script>alert|hunter2|c0nfigured/)
      }
    })
  ),
  Attack.make("an event: quotes bodies by its errors to bodies; below bodies their patterns alone", () =>
    Effect.gen(function* () {
      const { get } = yield* made({}, failed(`Unexpected token 'i', "it is hunter2" is not valid JSON`))
      assert.include((yield* get("/events", as("bodies"))).text, "it is hunter2")
      assert.notInclude((yield* get("/events", as("view"))).text, "hunter2")
    })
  ),
  Attack.make("an event: whose redact hook throws shows nothing of it", () =>
    Effect.gen(function* () {
      const redact = () => {
        throw new Error("no idea")
      }
      const { get } = yield* made({ redact }, failed("it is hunter2", "hunter2"))
      const { status, text } = yield* get("/events", as("purge"))
      assert.strictEqual(status, 200)
      assert.include(text, "the redact hook failed")
      assert.notInclude(text, "hunter2")
    })
  ),
  Attack.make("a flood of events: never pushes out what needs a person", () =>
    Effect.sync(() => {
      let now = 0
      const events = Events.make(() => now)
      const hook = events.hook("local")
      hook(dead)
      for (let n = 0; n < 20_000; n++) {
        now = n * 10
        hook(failed("no"))
      }
      assert.isTrue(events.all().some(({ id }) => id === "order-dead"))
    })
  ),
  Attack.make("a flood of events: takes no memory", () =>
    Effect.sync(() => {
      let now = 1
      const events = Events.make(() => now)
      const hook = events.hook("local")
      const long = "x".repeat(100_000)
      for (let n = 0; n < 1000; n++) hook(failed(long))
      now = 2000
      assert.isAtMost(events.all().length, 60)
      assert.isTrue(events.all().some(({ words }) => words === "950 more events within a second were not kept"))
      for (let n = 0; n < 100_000; n++) {
        now += 100
        hook(n % 2 === 0 ? failed(long) : dead)
      }
      assert.isAtMost(events.all().length, 1000)
      assert.isBelow(JSON.stringify(events.all()).length, 1_000_000)
    })
  ),
  Attack.make("an event: is seen by nobody who may not view", () =>
    Effect.gen(function* () {
      const { get } = yield* made({}, dead)
      for (const path of ["/events", "/live/events"]) assert.strictEqual((yield* get(path)).status, 401)
    })
  )
]
