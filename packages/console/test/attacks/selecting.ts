/** Filters, other queues, and the audit of each letter. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, type Console, type Redaction } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, prepared, redrive } from "./prepared.ts"

/** An audit whose disk is full behind so many writes of letters, and the lines that it has. */
const filling = (writes: number) => {
  const lines: Array<string> = []
  let letters = 0
  const audit: Console.Options["audit"] = (line) => {
    if (line.includes(`"event":"letter"`) && ++letters > writes) throw new Error("the disk is full")
    lines.push(...line.trimEnd().split("\n"))
  }
  return { audit, told: () => lines.filter((line) => line.includes(`"event":"letter"`)).length }
}

const many = Array.from({ length: 300 }, (_, n) => ({ id: `more-${n}` }))

/** Letters that a filter finds, as the page says. */
const found = ({ text }: World.Arrived): number => Number(/<b>(\d+) letters? found/.exec(text)?.[1])

const filtered = (filter: Readonly<Record<string, string>>): string =>
  `${World.deadLetters}&${new URLSearchParams(filter).toString()}`

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  ...(["/redrive", "/purge"] as const).map((path) =>
    Attack.make(`an audit that fails in the middle: lets no further letter go: ${path}`, () =>
      Effect.gen(function* () {
        const { audit, told } = filling(2)
        const world = yield* prepared({ audit, authorize: Authorization.everybody("root", "purge") })
        const { left, post, publish, settled, submit } = world
        yield* publish(...many)
        const plan = yield* world.planned
        const begun =
          path === "/redrive"
            ? yield* post(path, redrive(plan))
            : yield* submit(world.cause, path, { name: "orders.dlq" })
        const { text } = yield* settled(begun.headers.get("location")!)
        assert.match(text, /The job failed\..*the disk is full\. The letters that it did not record stay/)
        assert.isAbove(told(), 0)
        assert.strictEqual(yield* left, 301 - told())
      })
    )
  ),
  Attack.make("an operator who denies it: is named with each letter that has gone", () =>
    Effect.gen(function* () {
      const world = yield* prepared({ authorize: Authorization.everybody("root", "purge") })
      yield* world.publish({ id: "order-2", error: "no sku" }, { id: "order-3", error: "no sku" })
      const begun = yield* world.post("/redrive", redrive(yield* world.planned))
      yield* world.settled(begun.headers.get("location")!)
      const lines = world.audit.filter(({ event }) => event === "letter")
      assert.sameDeepMembers(
        lines.map(({ command, letter, operator, queue, to }) => [command, letter, operator, queue, to]),
        [1, 2, 3].map((n) => ["console redrive", `order-${n}`, "root", "orders.dlq", "orders"])
      )
      assert.lengthOf(
        new Set(world.audit.filter(({ command }) => command === "console redrive").map((line) => line["operation"])),
        1
      )
    })
  ),
  Attack.make("a filter: finds nothing out of what is hidden", () =>
    Effect.gen(function* () {
      const redact: Redaction.Redact = ({ headers, ...content }) => ({
        ...content,
        headers: Object.fromEntries(Object.entries(headers).map(([name]) => [name, "hidden"]))
      })
      const { publish, settled } = yield* World.make({ authorize: basic, redact })
      yield* publish({ id: "order-1", error: `card "4242" is wrong`, headers: { auth: "hunter2" } })
      const sent = as("view")
      assert.strictEqual(found(yield* settled(filtered({ header: "auth" }), sent)), 1)
      assert.strictEqual(found(yield* settled(filtered({ header: "auth=hunter2" }), sent)), 0)
      assert.strictEqual(found(yield* settled(filtered({ error: "is wrong" }), sent)), 1)
      assert.strictEqual(found(yield* settled(filtered({ error: "4242" }), sent)), 0)
    })
  ),
  Attack.make("a filter: that is none is refused, and stands for no letters", () =>
    Effect.gen(function* () {
      const { causes, get, left, submit } = yield* prepared({ authorize: Authorization.everybody("root", "purge") })
      const wrong = [
        { reason: "bored" },
        { since: "yesterday" },
        { older: "-1" },
        { id: "**" },
        { header: "=a" },
        { error: "x".repeat(201) }
      ]
      for (const filter of wrong) {
        assert.strictEqual((yield* get(filtered(filter))).status, 400, JSON.stringify(filter))
        assert.strictEqual((yield* submit(causes, "/purge", { ...filter, name: "orders.dlq" })).status, 400)
      }
      const evil = `"><script>alert(1)</script>`
      assert.notInclude((yield* get(filtered({ error: evil, header: evil, id: evil, origin: evil }))).text, "<script>")
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("a filter: many of them look at a queue one after the other, and few wait", () =>
    Effect.gen(function* () {
      const { get, publish } = yield* World.make()
      yield* publish(...many)
      const answers = yield* Effect.forEach(Array.from({ length: 12 }), (_, n) => get(filtered({ id: `more-${n}` })), {
        concurrency: "unbounded"
      })
      assert.includeMembers(
        answers.map(({ status }) => status),
        [503]
      )
    })
  ),
  Attack.make("a dry run: is followed by a redrive of its letters, and of no others", () =>
    Effect.gen(function* () {
      const { left, planned, post, publish } = yield* prepared()
      yield* publish({ id: "order-2", error: "no sku" })
      const plan = redrive(yield* planned)
      for (const other of [{ error: "sku" }, { cause: "0123456789abcdef" }]) {
        assert.strictEqual((yield* post("/redrive", { ...plan, ...other })).status, 409)
      }
      assert.strictEqual(yield* left, 2)
    })
  ),
  Attack.make("who may less: does not park, edit or count", () =>
    Effect.gen(function* () {
      const { get, left, post } = yield* prepared({ authorize: basic }, as("view"))
      const token = "none"
      for (const path of ["/park", "/edit", "/edit/preview", "/edit/send", "/plan"]) {
        for (const name of ["view", "bodies"]) {
          const { status, text } = yield* post(path, { broker: "local", queue: "orders.dlq", token }, as(name))
          assert.strictEqual(status, 403)
          assert.include(text, "it needs the role redrive", path)
        }
        assert.strictEqual((yield* get(path, as("purge"))).status, 405)
      }
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("a redrive to another queue: goes to none that is not configured", () =>
    Effect.gen(function* () {
      const { causes, left, submit } = yield* prepared()
      for (const to of ["orders.dlq", "payments", "__proto__", "../orders"]) {
        assert.strictEqual((yield* submit(causes, "/plan", { to })).status, 400, to)
      }
      assert.strictEqual(yield* left, 1)
    })
  )
]
