/** Operators who may less, and strangers. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, password, prepared, users } from "./prepared.ts"

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("who may less: does no more: view < bodies < redrive < purge", () =>
    Effect.gen(function* () {
      const { get, left, letter, post, publish } = yield* prepared({ authorize: basic }, as("view"))
      yield* publish({ id: "order-2" })
      const [, query] = /"broker" value=.*?"letter" value="([^"]+)"/s.exec(letter.text) ?? []
      assert.isUndefined(query, "the role view has no form for bodies")
      for (const [index, name] of users.entries()) {
        const page = yield* get("/", as(name))
        const fields = { token: "none", broker: "local", queue: "orders.dlq" }
        // A token is checked after the role: with a wrong one, both answers are refusals, and tell which.
        const told = yield* Effect.forEach(["/look", "/letter", "/redrive", "/purge"], (path) =>
          post(path, fields, as(name))
        )
        const granted = told.map(({ text }) => text.includes("the form is too old, or from another process"))
        assert.deepStrictEqual(
          granted,
          users.map((_, role) => role <= index),
          name
        )
        assert.strictEqual(page.status, 200)
      }
      assert.strictEqual(yield* left, 2)
    })
  ),
  Attack.make("who may less: is nobody without the right password, and is not told which part is wrong", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make({ authorize: basic })
      const wrong = [
        {},
        as("view", "another-password"),
        as("nobody"),
        as("view", password("purge")),
        { headers: { authorization: "Basic !" } },
        { headers: { authorization: `Bearer ${password("view")}` } }
      ]
      const answers = yield* Effect.forEach(wrong, (sent) => get("/", sent))
      for (const { headers, status, text } of answers) {
        assert.strictEqual(status, 401)
        assert.match(headers.get("www-authenticate")!, /^Basic realm=/)
        assert.strictEqual(text, answers[0]!.text)
      }
    })
  ),
  Attack.make(
    "who may less: cannot guess: after ten wrong passwords, right ones of that name and address are refused for a while",
    () =>
      Effect.gen(function* () {
        const { get } = yield* World.make({ authorize: basic })
        for (let n = 0; n < 10; n++) yield* get("/", as("view", `guess-number-${n}`))
        assert.strictEqual((yield* get("/", as("view"))).status, 429)
        // Nobody else is kept out.
        assert.strictEqual((yield* get("/", as("purge"))).status, 200)
        assert.strictEqual((yield* get("/", { ...as("view"), address: "127.0.0.2" })).status, 200)
      })
  ),
  Attack.make("who may less: is refused where the hook fails, or answers nonsense", () =>
    Effect.gen(function* () {
      const broken: ReadonlyArray<Authorization.Authorize> = [
        () => {
          throw new Error("the session store is down")
        },
        () => Promise.reject(new Error("it is down")),
        () => true as never, // What a hook in JavaScript may answer.
        () => undefined as never // The same.
      ]
      for (const authorize of broken) {
        const { get } = yield* World.make({ authorize })
        const { status, text } = yield* get("/")
        assert.include([401, 403], status)
        assert.notInclude(text, "session store")
      }
    })
  ),
  Attack.make("a token of a script: is taken by bearer authentication alone", () =>
    Effect.gen(function* () {
      const authorize = Authorization.bearer([{ name: "alerts", token: "a-long-token-of-a-script", role: "view" }])
      const { get } = yield* World.make({ authorize })
      const bearer = (value: string) => ({ headers: { authorization: `Bearer ${value}` } })
      assert.strictEqual((yield* get("/", bearer("a-long-token-of-a-script"))).status, 200)
      assert.strictEqual((yield* get("/", bearer("a-long-token-of-a-scrip"))).status, 401)
      assert.strictEqual((yield* get("/?access_token=a-long-token-of-a-script")).status, 401)
    })
  ),
  Attack.make("a token of a script: is long, and so is a password", () =>
    Effect.sync(() => {
      assert.throws(() => Authorization.bearer([{ name: "a", token: "short", role: "view" }]), /at least 12 characters/)
      assert.throws(
        () => Authorization.basic([{ name: "a", password: "short", role: "view" }]),
        /at least 12 characters/
      )
      assert.throws(
        () => Authorization.basic([{ name: "a", password: " ".repeat(12), role: "view" }]),
        /at least 12 characters/
      )
      assert.throws(() => Authorization.basic([]), /at least one/)
    })
  ),
  Attack.make("a purge: wants the queue's name, letter by letter", () =>
    Effect.gen(function* () {
      const { causes, left, settled, submit } = yield* prepared({ authorize: Authorization.everybody("root", "purge") })
      assert.strictEqual((yield* submit(causes, "/purge", { name: "orders" })).status, 400)
      assert.strictEqual(yield* left, 1)
      const begun = yield* submit(causes, "/purge", { name: "orders.dlq" })
      assert.match((yield* settled(begun.headers.get("location")!)).text, /removed<\/dt><dd><span class="strong">1</)
      assert.strictEqual(yield* left, 0)
    })
  ),
  Attack.make("a purge: of a cause leaves the others", () =>
    Effect.gen(function* () {
      const { cause, left, publish, settled, submit } = yield* prepared({
        authorize: Authorization.everybody("root", "purge")
      })
      yield* publish({ id: "order-2", error: "no sku" })
      const begun = yield* submit(cause, "/purge", { name: "orders.dlq" })
      yield* settled(begun.headers.get("location")!)
      assert.strictEqual(yield* left, 1)
      assert.match((yield* settled(World.deadLetters)).text, /no sku/)
    })
  )
]
