/** Who leaves the overview open, and what is shown there. */
import { assert } from "@effect/vitest"
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { BrokerSource, Console } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

const hostile = `<img src=x onerror=alert(1)>`

/** A console whose broker counts how often it is asked for the first queue, which has a hostile name. */
const asked = (options: Partial<Console.Options> = {}) =>
  Effect.gen(function* () {
    const own = yield* MemoryBroker.make()
    let rounds = 0
    const backlog: Broker.Admin["backlog"] = (request) => {
      if (request.queue === hostile) rounds++
      return own.admin.backlog!(request)
    }
    const layer = Layer.succeed(Broker.Broker, { ...own, admin: { ...own.admin, backlog } })
    const queues = [hostile, "mails"].map((name) => BrokerSource.queueOf({ name, options: {} }))
    const source = { name: "local", queues, layer, secrets: [] }
    const console = yield* Console.make({ brokers: [source], audit: () => {}, ...options })
    return { console, rounds: () => rounds, ...World.browser(console) }
  })

const pass = (millis: number) =>
  Effect.forEach(Array.from({ length: millis / 1000 }), () => TestClock.adjust("1 second"), { discard: true })

const live = ({ fetch }: Console.Console, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(() => {
    const request = new Request(`${World.origin}/live/overview`, { headers: { host: "localhost:4747", ...headers } })
    return fetch(request, { address: "127.0.0.1" })
  })

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("who watches all queues: makes the broker be asked no more often than one who looks", () =>
    Effect.gen(function* () {
      const { get, rounds } = yield* asked()
      yield* Effect.forEach(Array.from({ length: 50 }), () => get("/"), { concurrency: "unbounded" })
      assert.strictEqual(rounds(), 1)
    })
  ),
  Attack.make("who watches all queues: lets nobody be asked for ever, when he has gone without a word", () =>
    Effect.gen(function* () {
      const { console, rounds } = yield* asked()
      assert.strictEqual((yield* live(console)).status, 200)
      yield* pass(20 * 60_000)
      const before = rounds()
      yield* pass(20 * 60_000)
      assert.strictEqual(rounds(), before)
    })
  ),
  Attack.make("who watches all queues: takes no live page from others, and is known", () =>
    Effect.gen(function* () {
      const { console } = yield* asked({ authorize: basic })
      assert.strictEqual((yield* live(console)).status, 401)
      const answers = yield* Effect.forEach(Array.from({ length: 11 }), () => live(console, as("view").headers))
      assert.strictEqual(answers.at(-1)!.status, 503)
      assert.strictEqual((yield* live(console, as("bodies").headers)).status, 200)
    })
  ),
  Attack.make("who watches all queues: sees the name of a queue as text, also where it changes", () =>
    Effect.gen(function* () {
      const { console, get } = yield* asked()
      assert.notInclude((yield* get("/")).text, "<img")
      const { body } = yield* live(console)
      const reader = body!.getReader()
      const { value } = yield* Effect.promise(() => reader.read())
      const text = new TextDecoder().decode(value)
      assert.include(text, "&lt;img src=x")
      assert.notInclude(text, "<img")
      yield* Effect.promise(() => reader.cancel())
    })
  )
]
