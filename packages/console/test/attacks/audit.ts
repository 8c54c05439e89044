/** An audit that fails. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, type Console } from "../../src/index.ts"
import * as Attack from "./Attack.ts"
import { prepared, redrive } from "./prepared.ts"

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("an audit that cannot be written: lets nothing happen", () =>
    Effect.gen(function* () {
      let isFull = false
      const audit = () => (isFull ? Promise.reject(new Error("the disk is full")) : undefined)
      const { causes, left, letter, planned, post, submit } = yield* prepared({
        audit: audit as Console.Options["audit"], // Answers nothing, or rejects.
        authorize: Authorization.everybody("root", "purge")
      })
      const plan = yield* planned
      isFull = true
      const body = yield* submit(letter, "/letter")
      assert.strictEqual(body.status, 503)
      assert.notInclude(body.text, "the-body")
      assert.strictEqual((yield* post("/redrive", redrive(plan))).status, 503)
      assert.strictEqual((yield* post("/purge", { ...redrive(causes), name: "orders.dlq" })).status, 503)
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("an audit that cannot be written: does not even look for a body whose first line is missing", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const audit = (line: string) => {
        lines.push(line)
        if (line.includes(`"begin"`)) throw new Error("full")
      }
      const { letter, submit } = yield* prepared({ audit })
      const { status, text } = yield* submit(letter, "/letter")
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
      assert.lengthOf(lines, 1)
    })
  ),
  Attack.make("an audit that cannot be written: shows no body whose last line is missing", () =>
    Effect.gen(function* () {
      const audit = (line: string) => (line.includes(`"end"`) ? Promise.reject(new Error("full")) : undefined)
      const { letter, submit } = yield* prepared({ audit: audit as Console.Options["audit"] }) // Answers nothing, or rejects.
      const { status, text } = yield* submit(letter, "/letter").pipe(Effect.map((page) => page))
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
    })
  )
]
