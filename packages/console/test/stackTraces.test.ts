/** Stack traces of letters: for those who may see bodies, as far as the hook leaves them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, type Redaction } from "../src/index.ts"
import * as Downloading from "./downloading.ts"
import * as Waiting from "./waiting.ts"
import * as World from "./world.ts"

const stack = [
  "    at <b>handle</b> (/app/orders.ts:1:2)",
  "caused by: Error: password=hunter2",
  "    at query (/app/db.ts:3:4)"
].join("\n")

const opened = (role: "view" | "bodies" | "purge", redact?: Redaction.Redact) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize: Authorization.everybody("ann", role), redact })
    yield* world.publish({ id: "order-1", stack })
    const cause = yield* world.get(World.linkTo(yield* world.settled(World.deadLetters), "/group"))
    const page = yield* world.get(World.linkTo(cause, "/letter"))
    return { ...world, page }
  })

const exported = ({ console, get }: Effect.Success<ReturnType<typeof opened>>) =>
  Effect.gen(function* () {
    const token = Downloading.tokenOf(yield* get(Waiting.page))
    const { text } = yield* Downloading.read(yield* Downloading.ask(console, { token }))
    return JSON.parse(text) as { readonly redacted?: true; readonly metadata: { readonly dl: { readonly s?: string } } } // Of an export.
  })

describe("the page of a letter", () => {
  it.effect("shows the stack trace as text, without secrets, to who may see bodies", () =>
    Effect.gen(function* () {
      const { page } = yield* opened("bodies")
      const text = World.decoded(page.text)
      assert.include(text, "at <b>handle</b> (/app/orders.ts:1:2)")
      assert.include(page.text, "&lt;b&gt;handle")
      assert.include(text, "caused by: Error: password=•••• redacted")
      assert.notInclude(text, "hunter2")
      assert.include(text, "at query (/app/db.ts:3:4)")
    })
  )

  it.effect("does not show it to others, nor what the hook leaves out", () =>
    Effect.gen(function* () {
      const { page } = yield* opened("view")
      assert.notInclude(page.text, "Stack trace")
      assert.notInclude(page.text, "orders.ts")
      for (const left of [{}, { stack: undefined }]) {
        const hiding = yield* opened("bodies", (content) => ({
          ...content,
          error: { name: "Error", message: "no", ...left }
        }))
        assert.include(hiding.page.text, "Error: no")
        assert.notInclude(hiding.page.text, "orders.ts")
      }
    })
  )
})

describe("an export", () => {
  it.effect("has the stack trace as it is, or as it is shown, and is then no letter any more", () =>
    Effect.gen(function* () {
      const whole = yield* exported(yield* opened("purge", (content) => content))
      assert.deepStrictEqual([whole.redacted, whole.metadata.dl.s], [undefined, stack])
      const hidden = yield* exported(yield* opened("purge"))
      assert.strictEqual(hidden.redacted, true)
      assert.include(hidden.metadata.dl.s, "/app/orders.ts")
      assert.notInclude(hidden.metadata.dl.s, "hunter2")
    })
  )
})
