/** Much of everything. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as RateLimit from "../../src/internal/guard/rateLimit.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, prepared } from "./prepared.ts"

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("a sender of much: has no form read beyond its limit, whatever its length says", () =>
    Effect.gen(function* () {
      const { console, left } = yield* prepared()
      let sent = 0
      const endless = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          sent += 4096
          controller.enqueue(new Uint8Array(4096))
        }
      })
      const init = { method: "POST", body: endless, duplex: "half" }
      const headers = { ...World.own, host: "localhost:4747", "content-type": "application/x-www-form-urlencoded" }
      const request = new Request(`${World.origin}/redrive`, { ...init, headers } as RequestInit) // The type lacks `duplex`.
      const { status } = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
      assert.strictEqual(status, 413)
      assert.isBelow(sent, 64 * 1024)
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("a sender of much: is told to wait, and others are served", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      const answers = yield* Effect.forEach(Array.from({ length: 220 }), () => get("/jobs"))
      assert.strictEqual(answers.at(-1)!.status, 429)
      assert.isNotNull(answers.at(-1)!.headers.get("retry-after"))
      assert.strictEqual((yield* get("/jobs", { address: "127.0.0.2" })).status, 200)
    })
  ),
  Attack.make("a sender of much: is not whoever visits a page that sends it", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" }
      for (let n = 0; n < 220; n++) yield* get("/jobs", { headers })
      assert.strictEqual((yield* get("/jobs")).status, 200)
    })
  ),
  Attack.make("a sender of much: takes no live page from others, by HEAD, by many, or without reading", () =>
    Effect.gen(function* () {
      const { console, publish } = yield* prepared({ authorize: basic }, as("view"))
      yield* publish({ id: "order-2" })
      const asked = (name: string, method: string) =>
        Effect.promise(() => {
          const headers = { ...as(name).headers, host: "localhost:4747" }
          const url = `${World.origin}/live/look?broker=local&queue=orders.dlq`
          return console.fetch(new Request(url, { method, headers }), { address: "127.0.0.1" })
        })
      for (let n = 0; n < 30; n++) assert.strictEqual((yield* asked("view", "HEAD")).status, 200)
      const unread = yield* Effect.forEach(Array.from({ length: 11 }), () => asked("view", "GET"))
      assert.deepStrictEqual(
        unread.map(({ status }) => status),
        [...Array.from({ length: 10 }, () => 200), 503]
      )
      assert.strictEqual((yield* asked("bodies", "GET")).status, 200)
      // A stream ends by itself, and is asked for again: also for those whose rights ended meanwhile.
      yield* TestClock.adjust("61 seconds")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual((yield* asked("view", "GET")).status, 200)
    })
  ),
  Attack.make("a sender of much: does not make the console forget others", () =>
    Effect.sync(() => {
      const limit = RateLimit.make(10, 0.2)
      for (let n = 0; n < 11; n++) limit.take("guesser", 0)
      for (let n = 0; n < 5000; n++) limit.take(`other-${n}`, 0)
      assert.isFalse(limit.has("guesser", 0))
    })
  ),
  Attack.make("a sender of much: is refused what is no form", () =>
    Effect.gen(function* () {
      const { post } = yield* World.make()
      const { status } = yield* post("/look", {}, { headers: { "content-type": "text/plain" } })
      assert.strictEqual(status, 415)
    })
  )
]
