/** Edits of letters. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, Redaction } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { prepared } from "./prepared.ts"

/** A console whose operator has a draft, and the form of it. */
const drafted = Effect.gen(function* () {
  const authorize: Authorization.Authorize = (request) => ({
    _tag: "Granted",
    operator: request.headers.get("x-user") ?? "ann"
  })
  const world = yield* prepared({ authorize, redact: Redaction.none })
  const editor = yield* world.submit(world.letter, "/edit")
  const [, draft] = /name="draft" value="([^"]+)"/.exec(editor.text)!
  return { ...world, editor, draft: draft! }
})

const token = ({ text }: World.Arrived): string => /name="token" value="([^"]+)"/.exec(text)![1]!

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an edit: shows no body to whoever may redrive, and may not see bodies", () =>
    Effect.gen(function* () {
      const authorize: Authorization.Authorize = (_, action) =>
        action === "bodies" ? { _tag: "Forbidden", operator: "ann" } : { _tag: "Granted", operator: "ann" }
      const { causes, letter, post } = yield* prepared({ authorize, redact: Redaction.none })
      assert.notInclude(letter.text, "Edit a copy")
      const [, key] = /letter" value="([^"]+)"/.exec(letter.text)!
      const fields = { broker: "local", queue: "orders.dlq", letter: key!, token: token(causes) }
      const { status, text } = yield* post("/edit", fields)
      assert.strictEqual(status, 403)
      assert.notInclude(text, "the-body")
    })
  ),
  Attack.make("an edit: has nothing of what the hook hides, and the hidden part is not lost", () =>
    Effect.gen(function* () {
      const redact: Redaction.Redact = ({ body, ...content }) => ({
        ...content,
        body: typeof body === "string" ? body.replace("the-body", "hidden") : body
      })
      const { left, letter, submit } = yield* prepared({ redact })
      const { status, text } = yield* submit(letter, "/edit")
      assert.strictEqual(status, 409)
      assert.notInclude(text, "the-body")
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("an edit: of somebody else is nobody's to send or to see", () =>
    Effect.gen(function* () {
      const { draft, editor, get, left, post, submit } = yield* drafted
      yield* submit(editor, "/edit/preview", { headers: "", body: "mine" })
      const bob = { headers: { "x-user": "bob" } }
      const own = token(yield* get(World.deadLetters, bob))
      for (const path of ["/edit/preview", "/edit/send"]) {
        const { status, text } = yield* post(path, { draft, headers: "", body: "x", copy: "", token: own }, bob)
        assert.strictEqual(status, 409)
        assert.include(text, "has forgotten this draft")
      }
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("an edit: sends what was seen, and nothing else", () =>
    Effect.gen(function* () {
      const { broker, editor, submit } = yield* drafted
      const first = yield* submit(editor, "/edit/preview", { headers: "", body: "seen" })
      yield* submit(editor, "/edit/preview", { headers: "", body: "written later" })
      assert.strictEqual((yield* submit(first, "/edit/send")).status, 409)
      assert.strictEqual((yield* broker.admin.counts("orders")).ready, 0)
    })
  ),
  Attack.make("an edit: takes a form with a body, and no larger one", () =>
    Effect.gen(function* () {
      const { editor, submit } = yield* drafted
      const { status } = yield* submit(editor, "/edit/preview", { headers: "", body: "x".repeat(300_000) })
      assert.strictEqual(status, 413)
      assert.strictEqual((yield* submit(editor, "/stop", { body: "x".repeat(20_000) })).status, 413)
    })
  ),
  Attack.make("an edit: shows HTML in bodies, headers and names of operators as text", () =>
    Effect.gen(function* () {
      const evil = `</textarea></pre><script>alert(1)</script>`
      const { get, publish, settled, submit } = yield* World.make({ redact: Redaction.none })
      yield* publish({ id: evil, body: evil, headers: { evil } })
      const cause = yield* get(World.linkTo(yield* settled(World.deadLetters), "/group"))
      const editor = yield* submit(yield* get(World.linkTo(cause, "/letter")), "/edit")
      const preview = yield* submit(editor, "/edit/preview", { headers: `evil: 2${evil}`, body: `${evil}${evil}` })
      assert.strictEqual(preview.status, 200)
      for (const { text } of [editor, preview]) assert.notInclude(text, "<script>alert")
    })
  )
]
