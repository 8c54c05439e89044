/** Bodies as they are shown: as they are, and at a cost that has a bound. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { gzipSync } from "node:zlib"
import * as World from "./world.ts"

/** The page of a letter with this body, when it is shown, and the milliseconds of the processor that this took. */
const shown = (letter: Partial<World.Letter>) =>
  Effect.gen(function* () {
    const { get, publish, settled, submit } = yield* World.make()
    yield* publish({ id: "order-1", ...letter })
    const cause = yield* get(World.linkTo(yield* settled(World.deadLetters), "/group"))
    const page = yield* get(World.linkTo(cause, "/letter"))
    const before = process.cpuUsage()
    const { text } = yield* submit(page, "/letter")
    const { system, user } = process.cpuUsage(before)
    return { text: World.decoded(text), cost: (system + user) / 1000 }
  })

const gzip = { "content-encoding": "gzip" }
const keys = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, key) => [`key${key}`, key])))

describe("a body", () => {
  const dear = {
    "compressed objects": { body: gzipSync(`[${"{},".repeat(5_000_000)}{}]`), headers: gzip },
    objects: { body: `[${"{},".repeat(1_600_000)}{}]` },
    depth: { body: `${"[".repeat(99)}${"0,".repeat(2_500_000)}0${"]".repeat(99)}` },
    keys: { body: keys(350_000) },
    brackets: { body: "[".repeat(5_000_000) }
  }
  it.effect.each(Object.entries(dear))("of many %s costs little, and the page says that it is cut", ([, letter]) =>
    Effect.gen(function* () {
      const { cost, text } = yield* shown(letter)
      assert.include(text, "the beginning is shown")
      assert.isBelow(text.length, 110_000)
      assert.isBelow(cost, 800)
    })
  )

  it.effect("that is one long text has its beginning shown, whatever it is cut in", () =>
    Effect.gen(function* () {
      for (let offset = 0; offset < 13; offset++) {
        const body = `{"id":1,"${"k".repeat(offset + 1)}":["${String.raw`\\\u00e9é`.repeat(40_000)}"]}`
        const { text } = yield* shown({ body })
        assert.include(text, `"id": 1,`)
        assert.include(text, String.raw`\\éé\\éé`)
        assert.include(text, "JSON, ")
      }
    })
  )

  it.effect("that is cut has its secrets hidden, as a whole one", () =>
    Effect.gen(function* () {
      const body = JSON.stringify({ user: { name: "ann", password: "hunter2" }, pad: "x".repeat(300_000), last: 1 })
      const { text } = yield* shown({ body })
      assert.include(text, `"name": "ann"`)
      assert.notInclude(text, "hunter2")
    })
  )

  it.effect("is shown with its numbers as they are", () =>
    Effect.gen(function* () {
      const { text } = yield* shown({
        body: `{"id":12345678901234567890,"far":1e400,"price":1.10,"none":[],"of":{"a":[1,2]}}`
      })
      const lines = ["{", `  "id": 12345678901234567890,`, `  "far": 1e400,`, `  "price": 1.10,`, `  "none": [],`]
      assert.include(
        text,
        [...lines, `  "of": {`, `    "a": [`, "      1,", "      2", "    ]", "  }", "}"]
          .join("\n")
          .replaceAll(/\n\s*/g, "\n")
      )
    })
  )

  it.effect("with a key twice shows what was redacted, which is the last of them", () =>
    Effect.gen(function* () {
      const { text } = yield* shown({ body: `{"note":"first","note":"last"}` })
      assert.include(text, `"note": "last"`)
      assert.notInclude(text, "first")
    })
  )
})
