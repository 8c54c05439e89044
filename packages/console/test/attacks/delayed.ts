/** Messages in backoff, of somebody who means harm, and their removal by whoever may not. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Redaction } from "../../src/index.ts"
import * as Waiting from "../waiting.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

const evil = `"><script>alert(1)</script>`

const hostile = {
  id: `id ${evil} password=hunter2`,
  delay: 60_000,
  error: `SyntaxError: Unexpected token 'i', "it is hunter2" is not valid JSON`,
  headers: { cookie: "hunter2", [evil]: evil, note: "amqp://ann:hunter2@host/ and c0nfigured" }
}

const made = (redact?: Redaction.Redact) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize: basic, redact }, {}, ["c0nfigured"])
    yield* world.broker.publish([Waiting.waiting(hostile, 0)])
    const browsed = (role: string) =>
      Effect.flatMap(world.get(Waiting.page, as(role)), (page) => world.submit(page, "/delayed", {}, as(role)))
    return { ...world, browsed, left: Effect.map(world.broker.admin.counts("orders"), ({ delayed }) => delayed) }
  })

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("a message in backoff: is shown as text, and without secrets", () =>
    Effect.gen(function* () {
      const { browsed } = yield* made()
      for (const role of ["view", "bodies", "purge"]) {
        const { status, text } = yield* browsed(role)
        assert.strictEqual(status, 200)
        assert.notMatch(text, /<script>|the-body|c0nfigured|ann:hunter2|password=hunter2|>hunter2/)
        assert.include(World.decoded(text), evil)
      }
    })
  ),
  Attack.make("a message in backoff: quotes its body by its error below bodies to nobody", () =>
    Effect.gen(function* () {
      const { browsed } = yield* made()
      assert.notInclude((yield* browsed("view")).text, "hunter2")
      assert.include((yield* browsed("bodies")).text, "it is hunter2")
    })
  ),
  Attack.make("a message in backoff: is hidden whole where the redact hook throws", () =>
    Effect.gen(function* () {
      const { browsed } = yield* made((content) => {
        if (content.id !== undefined) throw new Error("no idea")
        return content
      })
      const { status, text } = yield* browsed("purge")
      assert.strictEqual(status, 200)
      assert.notMatch(text.replaceAll(/<h2>By last error.*?<h2>/gs, "<h2>"), /hunter2|no idea/)
      assert.include(text, "•••• redacted")
    })
  ),
  Attack.make("a message in backoff: is removed by nobody without the role, the token and the name", () =>
    Effect.gen(function* () {
      const { get, left, post, submit } = yield* made()
      const page = yield* get(Waiting.page, as("purge"))
      assert.notInclude((yield* get(Waiting.page, as("redrive"))).text, "purge-delayed")
      const fields = { broker: "local", queue: "orders", name: "orders" }
      const token = /name="token" value="([^"]+)"/.exec((yield* get(Waiting.page, as("redrive"))).text)![1]!
      assert.strictEqual((yield* post("/purge-delayed", { ...fields, token }, as("redrive"))).status, 403)
      assert.strictEqual((yield* post("/purge-delayed", fields, as("purge"))).status, 403)
      assert.strictEqual((yield* submit(page, "/purge-delayed", { name: "order" }, as("purge"))).status, 400)
      assert.strictEqual((yield* get("/purge-delayed?broker=local&queue=orders", as("purge"))).status, 405)
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("a message in backoff: is removed by no form in which nobody has chosen", () =>
    Effect.gen(function* () {
      const { get, left, settled, submit } = yield* made()
      const page = yield* get(Waiting.page, as("purge"))
      const browsed = yield* submit(page, "/delayed", {}, as("purge"))
      assert.match(browsed.text, /<select name="cause" required><option value="">choose<\/option>/)
      const unchosen = yield* submit(browsed, "/purge-delayed", { name: "orders" }, as("purge"))
      assert.strictEqual(unchosen.status, 400)
      assert.include(unchosen.text, "no messages are chosen")
      assert.strictEqual(yield* left, 1)
      const chosen = yield* submit(browsed, "/purge-delayed", { name: "orders", cause: "all" }, as("purge"))
      yield* settled(chosen.headers.get("location")!, as("purge"))
      assert.strictEqual(yield* left, 0)
    })
  ),
  Attack.make("a message in backoff: is looked for in queues of the configuration alone", () =>
    Effect.gen(function* () {
      const { get } = yield* made()
      for (const queue of ["orders.dlq", "secret", "", "../orders"]) {
        const path = `/delayed?${new URLSearchParams({ broker: "local", queue }).toString()}`
        assert.strictEqual((yield* get(path, as("purge"))).status, 404, queue)
      }
    })
  )
]
