/** Files of letters that somebody should not have. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, type Console } from "../../src/index.ts"
import * as Responses from "../../src/internal/responses.ts"
import * as Downloading from "../downloading.ts"
import * as Waiting from "../waiting.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

const made = (options: Partial<Console.Options> = {}, letter: Partial<World.Letter> = {}) =>
  Effect.gen(function* () {
    const authorize = Authorization.everybody("root", "purge")
    const world = yield* World.make({ authorize, ...options }, {}, ["c0nfigured"])
    yield* world.publish({ id: "order-1", body: `{"note":"the-body"}`, ...letter })
    return world
  })

const file = (options: Partial<Console.Options>, letter: Partial<World.Letter> = {}) =>
  Effect.gen(function* () {
    const { console, get } = yield* made(options, letter)
    const token = Downloading.tokenOf(yield* get(Waiting.page))
    return yield* Effect.flatMap(Downloading.ask(console, { token }), Downloading.read)
  })

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an export: is given to nobody below bodies, without a token, or by a link", () =>
    Effect.gen(function* () {
      const { audit, console, get, settled } = yield* made({ authorize: basic })
      const viewed = Downloading.tokenOf(yield* get(Waiting.page, as("view")))
      assert.strictEqual((yield* Downloading.ask(console, { token: viewed }, as("view"))).status, 403)
      assert.strictEqual((yield* Downloading.ask(console, { token: "none" }, as("bodies"))).status, 403)
      assert.strictEqual((yield* Downloading.ask(console, { token: viewed }, as("bodies"))).status, 403)
      const page = yield* get(Waiting.page, as("redrive"))
      const token = Downloading.tokenOf(page)
      assert.notInclude((yield* get(World.deadLetters, as("view"))).text, "/export")
      assert.strictEqual((yield* get("/export?broker=local&queue=orders.dlq", as("purge"))).status, 405)
      assert.deepStrictEqual(audit, [])
      yield* settled(World.deadLetters, as("redrive"))
      assert.strictEqual((yield* Downloading.ask(console, { token }, as("redrive"))).status, 200)
    })
  ),
  Attack.make("an export: of letters with secrets has none of them: of the configuration", () =>
    Effect.gen(function* () {
      const { isWhole, text } = yield* file({}, { body: `{"note":"c0nfigured"}`, error: "c0nfigured" })
      assert.isTrue(isWhole)
      assert.notInclude(text, "c0nfigured")
    })
  ),
  Attack.make("an export: of letters with secrets has none of them: where a key stands twice", () =>
    Effect.gen(function* () {
      const { text } = yield* file({}, { body: `{"a":{"password":"hunter2"},"a":1}` })
      assert.notInclude(text, "hunter2")
    })
  ),
  Attack.make(
    "an export: of letters with secrets has none of them: in a body that is too large to be browsed through",
    () =>
      Effect.gen(function* () {
        const { text } = yield* file({}, { body: JSON.stringify({ pad: "x".repeat(300_000), password: "hunter2" }) })
        assert.notInclude(text, "hunter2")
        assert.isBelow(text.length, 2000)
      })
  ),
  Attack.make("an export: says where something is hidden, so that nobody takes it for the letter", () =>
    Effect.gen(function* () {
      for (const letter of [{ body: `{"password":"hunter2"}` }, { headers: { cookie: "hunter2" } }]) {
        assert.include((yield* file({}, letter)).text, `"redacted":true`)
      }
    })
  ),
  Attack.make("an export: has nothing of a letter where nobody can say how it may be seen", () =>
    Effect.gen(function* () {
      const redact = () => {
        throw new Error("no idea")
      }
      const { isWhole, text } = yield* file({ redact })
      assert.isTrue(isWhole)
      assert.include(text, `"redacted":true`)
      assert.notMatch(text, /the-body|order-1|503 from the shop|no idea/)
    })
  ),
  Attack.make("an export: begins without no line of the audit", () =>
    Effect.gen(function* () {
      const audit = () => Promise.reject(new Error("the disk is full"))
      const { console, get } = yield* made({ audit })
      const token = Downloading.tokenOf(yield* get(Waiting.page))
      const response = yield* Downloading.ask(console, { token })
      assert.strictEqual(response.status, 503)
      assert.notInclude(yield* Effect.promise(() => response.text()), "the-body")
    })
  ),
  Attack.make("an export: is not whole where the audit has no line of its end", () =>
    Effect.gen(function* () {
      const audit = (line: string) => (line.includes(`"end"`) ? Promise.reject(new Error("full")) : undefined)
      assert.isFalse((yield* file({ audit: audit as Console.Options["audit"] })).isWhole) // Answers nothing, or rejects.
    })
  ),
  Attack.make("an export: has a name that is one of a file, whatever the queue's is", () =>
    Effect.sync(() => {
      const names = [
        `a"; filename="evil.sh`,
        "../../etc/passwd",
        ".bashrc",
        "-rf",
        "a\r\nset-cookie: b=1",
        "\u202etxt.exe"
      ]
      for (const name of names) {
        const { headers } = Responses.download({ name, body: new ReadableStream() })
        assert.match(headers.get("content-disposition")!, /^attachment; filename="[\w][\w.-]*"$/, name)
        assert.isNull(headers.get("set-cookie"))
      }
    })
  )
]
