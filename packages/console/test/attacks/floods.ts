/** Much of everything. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { prepared } from "./prepared.ts"

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
  Attack.make("a sender of much: is refused what is no form", () =>
    Effect.gen(function* () {
      const { post } = yield* World.make()
      const { status } = yield* post("/look", {}, { headers: { "content-type": "text/plain" } })
      assert.strictEqual(status, 415)
    })
  )
]
