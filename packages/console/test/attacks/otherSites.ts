/** Pages of other sites, and forms that are none of this console. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, prepared, redrive } from "./prepared.ts"

const attempts: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
  ["a form", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
  ["a form of another port", { origin: "http://localhost:9999", "sec-fetch-site": "same-site" }],
  ["a sandboxed frame", { origin: "null", "sec-fetch-site": "cross-site" }],
  ["an old browser", { origin: "https://evil.example", "sec-fetch-site": "" }],
  ["nobody knows", { origin: "", "sec-fetch-site": "" }]
]

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  ...attempts.map(([name, headers]) =>
    Attack.make(`a page of another site: redrives nothing: ${name}`, () =>
      Effect.gen(function* () {
        const { causes, console, left, audit } = yield* prepared()
        const given = Object.entries({ ...headers, host: "localhost:4747" }).filter(([, value]) => value !== "")
        const request = new Request(`${World.origin}/redrive`, {
          method: "POST",
          headers: [...given, ["content-type", "application/x-www-form-urlencoded"]] as Array<[string, string]>,
          body: new URLSearchParams(redrive(causes)).toString()
        })
        const { status } = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
        assert.strictEqual(status, 403)
        assert.strictEqual(yield* left, 1)
        assert.deepStrictEqual(audit, [])
      })
    )
  ),
  Attack.make("a page of another site: reads nothing by a script, a frame or an image; a link is followed", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      const from = (mode: string, dest: string) => ({
        headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest }
      })
      assert.strictEqual((yield* get("/", from("no-cors", "script"))).status, 403)
      assert.strictEqual((yield* get("/", from("navigate", "iframe"))).status, 403)
      assert.strictEqual((yield* get("/", from("navigate", "document"))).status, 200)
    })
  ),
  Attack.make("a page of another site: cannot frame it, run anything in it, or be told of it", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      for (const path of ["/", "/nothing", World.deadLetters]) {
        const { headers, text } = yield* get(path)
        const policy = headers.get("content-security-policy")!
        assert.match(policy, /default-src 'none'/)
        assert.match(policy, /frame-ancestors 'none'/)
        assert.notMatch(policy, /unsafe|\*|data:/)
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(headers.get("cache-control"), "no-store")
        assert.notMatch(text, /<style|<script(?! src=)|\son\w+=|\sstyle=|javascript:|https?:\/\/(?!www\.w3\.org)/)
      }
    })
  ),
  Attack.make("a form without its token: does nothing, and neither does that of another operator or process", () =>
    Effect.gen(function* () {
      const { left, planned, post } = yield* prepared({ authorize: basic }, as("purge"))
      const other = yield* prepared({ authorize: basic }, as("purge"))
      const fields = redrive(yield* planned)
      const { token: own, ...without } = fields
      const attempts = [
        [without, "purge"],
        [{ ...without, token: "" }, "purge"],
        [{ ...without, token: `${own.slice(0, -4)}AAAA` }, "purge"],
        [fields, "redrive"],
        [redrive(yield* other.planned), "purge"]
      ] as const
      for (const [sent, name] of attempts) assert.strictEqual((yield* post("/redrive", sent, as(name))).status, 403)
      assert.strictEqual(yield* left, 1)
      assert.strictEqual((yield* post("/redrive", fields, as("purge"))).status, 303)
    })
  ),
  Attack.make("a form without its token: does nothing, and neither does one of yesterday, or with another time", () =>
    Effect.gen(function* () {
      const { causes, left, post } = yield* prepared()
      yield* TestClock.adjust("13 hours")
      const { token, ...fields } = redrive(causes)
      const later = `${(13 * 3_600_000).toString(36)}.${token.split(".")[1]}`
      for (const each of [token, later]) {
        assert.strictEqual((yield* post("/redrive", { ...fields, token: each })).status, 403)
      }
      assert.strictEqual(yield* left, 1)
    })
  )
]
