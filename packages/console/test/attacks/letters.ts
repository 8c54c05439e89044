/** Letters of somebody who means harm. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { prepared } from "./prepared.ts"

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("a letter of somebody who means harm: is shown as text, wherever it stands", () =>
    Effect.gen(function* () {
      const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
      const { get, publish, settled, submit } = yield* World.make()
      yield* publish({ id: evil, body: evil, error: evil, headers: { [evil]: evil } })
      const causes = yield* settled(World.deadLetters)
      const cause = yield* get(World.linkTo(causes, "/group"))
      const letter = yield* get(World.linkTo(cause, "/letter"))
      const shown = yield* submit(letter, "/letter")
      const plan = yield* submit(cause, "/plan")
      const job = yield* settled(plan.headers.get("location")!)
      for (const { text } of [causes, cause, letter, shown, job, yield* get("/jobs")]) {
        assert.notMatch(text, /<script>|<img/)
      }
      assert.include(World.decoded(shown.text), evil)
    })
  ),
  Attack.make(
    "a letter of somebody who means harm: is shown in part where it is large, and as hexadecimal digits where it is no text",
    () =>
      Effect.gen(function* () {
        const { get, publish, settled, submit } = yield* World.make()
        yield* publish({ id: "large", body: JSON.stringify({ a: "x".repeat(250_000) }) })
        yield* publish({ id: "bytes", body: Uint8Array.from([0xff, 0x00, 0x3c, 0x62, 0x3e]) })
        const cause = yield* Effect.flatMap(settled(World.deadLetters), (causes) => get(World.linkTo(causes, "/group")))
        const links = [...cause.text.matchAll(/href="(\/letter[^"]+)"/g)].map(([, href]) => World.decoded(href!))
        const shown = yield* Effect.forEach(links, (href) =>
          Effect.flatMap(get(href), (page) => submit(page, "/letter"))
        )
        assert.isBelow(shown[0]!.text.length, 200_000)
        assert.include(shown[0]!.text, "of which the beginning is shown")
        assert.include(World.decoded(shown[1]!.text), "ff 00 3c 62 3e")
      })
  ),
  Attack.make("a letter of somebody who means harm: is hidden whole where the redact hook fails", () =>
    Effect.gen(function* () {
      const redact = ({
        body,
        headers
      }: {
        readonly headers: Readonly<Record<string, string>>
        readonly body?: unknown
      }) => {
        if (body !== undefined) throw new Error("no idea")
        return { headers }
      }
      const { letter, submit } = yield* prepared({ redact })
      const { status, text } = yield* submit(letter, "/letter")
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
    })
  )
]
