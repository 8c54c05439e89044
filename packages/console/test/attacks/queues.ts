/** What somebody tries on the pages of queues. */
import { adapter } from "@requeue/adapter-memory"
import { assert } from "@effect/vitest"
import type { Plan } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { most } from "../../src/internal/work/outage.ts"
import { hostile, make, operationsOf, pathOf } from "../queueWorld.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

/** An outage in which so much happens that it would take for ever. */
const endless = { outage: "1440", rate: "0.5", handler: "1", concurrency: "100" }

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an address of a queue's page: leads to queues of the configuration, and to nobody without a role", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make({ authorize: basic })
      assert.strictEqual((yield* get(pathOf("local", "orders"), as("view"))).status, 200)
      assert.strictEqual((yield* get(pathOf("local", "orders"))).status, 401)
      for (const name of ["payroll", "orders.dlq", "__proto__", ""]) {
        assert.strictEqual((yield* get(pathOf("local", name), as("view"))).status, 404, name)
      }
      const another = {
        headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", ...as("view").headers }
      }
      assert.strictEqual((yield* get(pathOf("local", "orders", endless), another)).status, 403)
    })
  ),
  Attack.make("a queue's name with HTML: stays a text, in words, plots and diagrams", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const { status, text } = yield* get(pathOf("memory", hostile, { outage: "1" }))
      assert.strictEqual(status, 200)
      assert.include(text, "&lt;img src=x onerror=alert(1)&gt;")
      assert.notMatch(text, /<img|\u202e/)
    })
  ),
  Attack.make("an adapter that tells secrets: has them struck out of plans and findings", () =>
    Effect.gen(function* () {
      const { operate, plan } = operationsOf(adapter, "memory:")
      const telling: Plan.Finding = { about: "s3cret-word", verdict: "bad", detail: "it is s3cret-word" }
      const { get } = yield* make(
        {},
        {
          plan,
          operate: Effect.map(operate, (operator) => ({
            ...operator,
            plan: (request) =>
              Effect.map(operator.plan(request), (made) => ({
                ...made,
                delays: "by s3cret-word",
                notes: ["s3cret-word"],
                flows: [...made.flows, { from: "s3cret-word", to: "b", label: "s3cret-word" }]
              })),
            inspect: (request) =>
              Effect.map(operator.inspect(request), ({ objects }) => ({
                objects: objects.map((object) => ({ ...object, state: "different" as const, why: "s3cret-word" })),
                findings: [telling]
              }))
          }))
        }
      )
      const { text } = yield* get(pathOf("memory", "orders"))
      assert.include(text, "it is ***")
      assert.notInclude(text, "s3cret-word")
    })
  ),
  Attack.make("numbers of an outage: are bounded", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const wrong = ["1e9", "-1", "NaN", "Infinity", "0x10", "1".repeat(400), "1441"]
      for (const outage of wrong) {
        assert.strictEqual((yield* get(pathOf("memory", "orders", { outage }))).status, 400, outage)
      }
      const { text } = yield* get(pathOf("memory", "orders", { outage: "1440", rate: "10000" }))
      assert.include(text, "too many to simulate")
    })
  ),
  Attack.make("an outage without an end: is cut, while others are served", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const simulated = yield* Effect.forkChild(get(pathOf("memory", "hot", endless)), { startImmediately: true })
      let turns = 0
      while (simulated.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        turns++
      }
      // A simulation of 200 steps lets others in after each.
      assert.isAbove(turns, 50, "it held the process")
      const { text } = yield* Fiber.join(simulated)
      assert.include(text, "The simulation stopped early.")
    })
  ),
  Attack.make("many outages at once: are refused when too many wait", () =>
    Effect.gen(function* () {
      const { get } = yield* make()
      const path = pathOf("memory", "forever", { outage: "1", rate: "2" })
      const all = yield* Effect.all(
        Array.from({ length: most.running + most.waiting + 5 }, () => get(path)),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        all.filter(({ status }) => status === 503),
        5
      )
    })
  ),
  Attack.make("many outages at once: keep no seat for clients that have gone", () =>
    Effect.gen(function* () {
      const { console, get } = yield* make()
      const path = pathOf("memory", "forever", { outage: "1440", rate: "0.5" })
      const gone = new AbortController()
      const request = () =>
        new Request(new URL(path, World.origin), { headers: { host: "localhost:4747" }, signal: gone.signal })
      const asked = Array.from({ length: most.running + most.waiting }, () =>
        console.fetch(request(), { address: "127.0.0.1" })
      )
      const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      while ((yield* get(path)).status !== 503) yield* turn
      gone.abort()
      for (let turns = 0; turns < 5; turns++) yield* turn
      assert.strictEqual((yield* get(pathOf("memory", "orders", { outage: "1" }))).status, 200)
      yield* Effect.promise(() => Promise.all(asked))
    })
  )
]
