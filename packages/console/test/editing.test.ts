/** An edited copy of a letter: how it is written, seen, and redriven. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { Authorization, Redaction } from "../src/index.ts"
import { prepared } from "./attacks/prepared.ts"
import * as World from "./world.ts"

const json = { "content-type": "application/json" }

/** The page of a letter, and what it takes to edit it. */
const opened = (letter: Partial<World.Letter> = {}, redact: Redaction.Redact = Redaction.none) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize: Authorization.everybody("ann", "redrive"), redact })
    yield* world.publish({ id: "order-1", body: `{"pieces":"two","n":12345678901234567890}`, headers: json, ...letter })
    const cause = yield* world.get(World.linkTo(yield* world.settled(World.deadLetters), "/group"))
    const page = yield* world.get(World.linkTo(cause, "/letter"))
    const consumed: Array<readonly [unknown, Readonly<Record<string, string>>]> = []
    const consume = (queue = "orders") =>
      Effect.provideService(
        Consumer.start<unknown>(queue, {}, ({ body, headers }) => void consumed.push([body, headers])),
        Broker.Broker,
        world.broker
      )
    const edit = world.submit(page, "/edit")
    return { ...world, page, consumed, consume, edit }
  })

const headers = "content-type: application/json"

describe("an edited copy", () => {
  it.effect("is seen with its differences, redriven, and takes the place of its letter", () =>
    Effect.gen(function* () {
      const { audit, broker, consume, consumed, edit, settled, submit } = yield* opened()
      yield* consume()
      const editor = yield* edit
      const shown = `{\n"pieces": "two",\n"n": 12345678901234567890\n}`
      assert.include(World.decoded(editor.text), shown)
      assert.include(editor.text, "formatted with one value a line")
      const body = `{\r\n  "pieces": 2,\r\n  "n": 12345678901234567890\r\n}`
      const preview = yield* submit(editor, "/edit/preview", { headers: `${headers}\r\ntenant: acme`, body })
      const seen = World.decoded(preview.text)
      assert.match(seen, /class="old">−\s+"pieces": "two",.*class="new">\+\s+"pieces": 2,/s)
      assert.match(seen, /class="new">\+ tenant: acme/)
      assert.include(seen, "Redrive the copy to orders")
      const sent = yield* submit(preview, "/edit/send")
      const ended = yield* settled(sent.headers.get("location")!)
      assert.include(ended.text, "has succeeded")
      assert.include(ended.text, "is removed")
      assert.lengthOf(consumed, 1)
      assert.deepInclude(consumed[0]![1], { tenant: "acme" })
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 0)
      assert.deepStrictEqual(
        audit.map(({ command, event, letter, outcome }) => [command, event, letter ?? outcome]),
        [
          ["console body", "begin", undefined],
          ["console body", "end", "done"],
          ["console edit", "begin", undefined],
          ["console edit", "letter", "order-1"],
          ["console edit", "end", "succeeded"]
        ]
      )
      assert.deepStrictEqual(
        audit.flatMap(({ command, options }) => (command === "console body" ? [options] : [])),
        Array.from({ length: 2 }, () => ({ letter: "order-1", edit: true }))
      )
    })
  )

  it.effect("that nobody takes leaves the letter where it is, and says so; who edits it again is told", () =>
    Effect.gen(function* () {
      const { broker, edit, page, settled, submit } = yield* opened()
      const preview = yield* submit(yield* edit, "/edit/preview", { headers, body: "{}" })
      const sent = yield* submit(preview, "/edit/send")
      const ended = yield* settled(sent.headers.get("location")!)
      assert.include(ended.text, "is still queued or in work")
      assert.include(ended.text, "is kept")
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 1)
      // Letters may have changed, so that it leads to another look.
      yield* settled((yield* submit(page, "/edit")).headers.get("location")!)
      assert.include((yield* submit(page, "/edit")).text, "An edited copy exists already.")
    })
  )

  it.effect("goes to another queue that is configured", () =>
    Effect.gen(function* () {
      const { broker, consume, consumed, edit, settled, submit } = yield* opened()
      yield* broker.publish([{ ...World.outgoing({ id: "first" }, 0), queue: "mails" }])
      yield* broker.admin.purge("mails")
      yield* consume("mails")
      const editor = yield* edit
      assert.strictEqual((yield* submit(editor, "/edit/preview", { headers, body: "{}", to: "payments" })).status, 400)
      const preview = yield* submit(editor, "/edit/preview", { headers, body: "{}", to: "mails" })
      const sent = yield* submit(preview, "/edit/send")
      yield* settled(sent.headers.get("location")!)
      assert.deepStrictEqual(
        consumed.map(([body]) => body),
        [{}]
      )
    })
  )

  it.effect("is refused where it is wrong, or where nothing was changed", () =>
    Effect.gen(function* () {
      const { edit, submit } = yield* opened()
      const editor = yield* edit
      const body = `{\n  "pieces": "two",\n  "n": 12345678901234567890\n}`
      const wrong = [
        [{ headers, body }, /nothing was changed/],
        [{ headers, body: "{" }, /the body is not JSON/],
        [{ headers: "no header", body }, /is not a valid header/],
        [{ headers: `${headers}\r\n\r\ntenant: acme`, body }, /"" is not a valid header/],
        [{ headers: `${headers}\n \t\ntenant: acme`, body: "{}" }, /is not a valid header/],
        [{ headers: `# a: b\n${headers}`, body: "{}" }, /"# a: b" is not a valid header/],
        [{ headers: "requeue: x", body }, /belongs to Requeue/],
        [{ headers, body: `"${"x".repeat(70_000)}"` }, /more than 65536 bytes/]
      ] as const
      for (const [fields, why] of wrong) {
        const { status, text } = yield* submit(editor, "/edit/preview", fields)
        assert.strictEqual(status, 400)
        assert.match(World.decoded(text), why)
      }
    })
  )

  it.effect("is none of a letter that cannot be shown as it is, and the page says why", () =>
    Effect.gen(function* () {
      const reasons: ReadonlyArray<readonly [Partial<World.Letter>, RegExp]> = [
        [{ body: new Uint8Array([0xff, 0]) }, /its body is not text/],
        [{ body: "x".repeat(70_000) }, /more than 65536 bytes/],
        [{ body: "a\r\nb" }, /characters that a page cannot show/],
        [{ headers: { "content-encoding": "gzip" } }, /its body is encoded: gzip/],
        [{ body: `{"password":"hunter2"}` }, /a part of its body is hidden, and would be lost/]
      ]
      for (const [letter, why] of reasons) {
        const { edit } = yield* opened(letter, Redaction.standard)
        const { status, text } = yield* edit
        assert.strictEqual(status, 409)
        assert.match(text, why)
        assert.notInclude(text, "hunter2")
      }
    })
  )

  it.effect("keeps headers that are hidden, and does not show them", () =>
    Effect.gen(function* () {
      const { consume, consumed, edit, settled, submit } = yield* opened(
        { headers: { authorization: "hunter2" } },
        Redaction.standard
      )
      yield* consume()
      const editor = yield* edit
      assert.include(editor.text, "The headers stay unchanged")
      assert.notInclude(editor.text, "hunter2")
      const preview = yield* submit(editor, "/edit/preview", { headers: "authorization: x", body: "{}" })
      assert.notInclude(preview.text, "hunter2")
      yield* settled((yield* submit(preview, "/edit/send")).headers.get("location")!)
      assert.deepInclude(consumed[0]![1], { authorization: "hunter2" })
    })
  )
})

describe("two operators", () => {
  it.effect("who edit the same letter are told, and the second one's copy does not go", () =>
    Effect.gen(function* () {
      const authorize: Authorization.Authorize = (request) => ({
        _tag: "Granted",
        operator: request.headers.get("x-user") ?? "ann"
      })
      const { letter, post, settled, submit } = yield* prepared({ authorize, redact: Redaction.none })
      const bob = { headers: { "x-user": "bob" } }
      const bobs = (page: World.Arrived) =>
        Effect.map(post("/edit", { ...fieldsOf(page), token: "" }, bob), ({ status }) => status)
      assert.strictEqual(yield* bobs(letter), 403)
      const mine = yield* submit(letter, "/edit")
      const again = yield* submit(letter, "/edit")
      assert.notInclude(again.text, "Somebody else")
      const first = yield* submit(mine, "/edit/preview", { headers: "", body: "mended" })
      const second = yield* submit(again, "/edit/preview", { headers: "", body: "mended otherwise" })
      const sent = yield* submit(first, "/edit/send")
      yield* settled(sent.headers.get("location")!)
      const late = yield* submit(second, "/edit/send")
      assert.strictEqual(late.status, 409)
      assert.match(late.text, /job \w+ of ann has redriven an edited copy of this letter meanwhile/)
    })
  )
})

const fieldsOf = ({ text }: World.Arrived): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [
      name!,
      World.decoded(value!)
    ])
  )
