/** What operators do with some letters, with one, and elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { Authorization } from "../src/index.ts"
import * as World from "./world.ts"

const opened = Effect.gen(function* () {
  const world = yield* World.make({ authorize: Authorization.everybody("ann", "purge") })
  yield* world.publish({ id: "old-1", error: "503 from the shop", headers: { tenant: "acme" } })
  yield* TestClock.adjust("2 hours")
  yield* world.publish(
    { id: "new-1", error: "503 from the shop", headers: { tenant: "globex" }, fairBy: "<globex>" },
    { id: "new-2", error: "no sku" }
  )
  const filtered = (filter: Readonly<Record<string, string>>) =>
    world.settled(`${World.deadLetters}&${new URLSearchParams(filter).toString()}`)
  const ids = Effect.map(World.shown(world.broker, "orders.dlq", 10), (letters) =>
    letters.map(({ metadata }) => metadata.id)
  )
  /** Goes where a form leads to, and waits for the end. */
  const done = ({ headers, status, text }: World.Arrived) =>
    status === 303 ? world.settled(headers.get("location")!) : Effect.die(new Error(text))
  return { ...world, filtered, ids, done }
})

describe("a filter", () => {
  it.effect("shows the letters that the command line's would mean", () =>
    Effect.gen(function* () {
      const { filtered } = yield* opened
      const expected: ReadonlyArray<readonly [Readonly<Record<string, string>>, number]> = [
        [{ error: "From The" }, 2],
        [{ error: "shop", since: "1h" }, 1],
        [{ older: "1h" }, 1],
        [{ since: "1970-01-01T01:00Z" }, 2],
        [{ header: "tenant=acme" }, 1],
        [{ header: "tenant" }, 2],
        [{ id: "new-*" }, 2],
        [{ origin: "orders" }, 3],
        [{ reason: "permanent" }, 0]
      ]
      for (const [filter, count] of expected) {
        const { text } = yield* filtered(filter)
        assert.include(text, `<b>${count} letter${count === 1 ? "" : "s"} found.</b>`, JSON.stringify(filter))
      }
      const { text } = yield* filtered({ error: "shop", since: "1h" })
      assert.include(World.decoded(text), `Only letters with:<b>error with "shop"; dead-lettered since 1h ago</b>`)
    })
  )

  it.effect("goes with causes and letters, and dry run, redrive and purge take its letters alone", () =>
    Effect.gen(function* () {
      const { audit, done, filtered, get, ids, submit } = yield* opened
      const page = yield* filtered({ error: "shop", since: "1h" })
      const cause = yield* get(World.linkTo(page, "/group"))
      assert.include(cause.text, ">new-1<")
      assert.notInclude(cause.text, ">old-1<")
      const counted = yield* done(yield* submit(page, "/plan"))
      assert.include(World.decoded(counted.text), `letters, only error with "shop", dead-lettered since 1h ago`)
      assert.include(counted.text, "Redrive 1 letter<")
      // The letters are those of the time of the dry run.
      yield* TestClock.adjust("2 hours")
      yield* done(yield* submit(counted, "/redrive", { how: "at-once" }))
      assert.deepStrictEqual(yield* ids, ["old-1", "new-2"])
      const begun = audit.find(({ command }) => command === "console redrive")!
      assert.deepStrictEqual(begun["filters"], { error: "shop", since: { ago: 3_600_000 } })
      const rest = yield* filtered({ id: "old-*" })
      yield* done(yield* submit(rest, "/purge", { name: "orders.dlq" }))
      assert.deepStrictEqual(yield* ids, ["new-2"])
    })
  )

  it.effect("is forgotten with what it has found when letters have gone", () =>
    Effect.gen(function* () {
      const { done, filtered, get, submit } = yield* opened
      yield* filtered({ error: "shop" })
      const all = yield* filtered({})
      yield* done(yield* submit(all, "/purge", { name: "orders.dlq" }))
      assert.include((yield* filtered({ error: "shop" })).text, "No such letters.")
      assert.strictEqual((yield* get("/jobs")).status, 200)
    })
  )
})

describe("a letter", () => {
  it.effect("is redriven alone, from its page", () =>
    Effect.gen(function* () {
      const { done, filtered, get, ids, submit } = yield* opened
      const cause = yield* get(World.linkTo(yield* filtered({ header: "tenant=globex" }), "/group"))
      const letter = yield* get(World.linkTo(cause, "/letter"))
      assert.include(letter.text, "Redrive this letter…")
      assert.include(letter.text, `<dt>fairBy</dt><dd><span class="mono">&lt;globex&gt;</span></dd>`)
      const counted = yield* done(yield* submit(letter, "/plan"))
      assert.include(counted.text, "<h1>Dry run: the letter new-1</h1>")
      assert.match(counted.text, /would be redriven<\/dt><dd><span class="strong">1</)
      // It goes no further than to its letter.
      assert.notInclude(counted.text, "not meant")
      yield* done(yield* submit(counted, "/redrive", { how: "at-once" }))
      assert.deepStrictEqual(yield* ids, ["old-1", "new-2"])
    })
  )
})

describe("the numbers of a redrive", () => {
  it.effect("say what is left when it ends, also where somebody else has removed letters meanwhile", () =>
    Effect.gen(function* () {
      const { broker, filtered, get, publish, settled, submit } = yield* opened
      yield* publish(...["late-1", "late-2", "late-3"].map((id) => ({ id, error: "no sku" })))
      const page = yield* filtered({ error: "shop" })
      const counted = yield* settled((yield* submit(page, "/plan")).headers.get("location")!)
      const begun = yield* submit(counted, "/redrive", { how: "stages" })
      const path = begun.headers.get("location")!
      let text = ""
      for (let loads = 0; loads < 100 && !text.includes("left of those at its beginning"); loads++) {
        yield* TestClock.adjust("10 millis")
        text = (yield* get(path)).text
      }
      assert.include(text, "left of those at its beginning")
      yield* broker.admin.purge("orders.dlq")
      yield* submit(yield* get(path), "/stop")
      assert.match((yield* settled(path)).text, /left here<\/dt><dd><span class="zero">0</)
    })
  )
})

describe("parked letters", () => {
  it.effect("are aside as they were, and go back to the others, or to work", () =>
    Effect.gen(function* () {
      const { audit, broker, done, filtered, get, ids, settled, submit } = yield* opened
      yield* broker.publish([{ ...World.outgoing({ id: "first" }, 0), queue: "orders" }])
      yield* broker.admin.purge("orders")
      const before = (yield* World.shown(broker, "orders.dlq", 10)).map(({ metadata }) => metadata)
      const cause = yield* get(World.linkTo(yield* filtered({ error: "shop" }), "/group"))
      const ended = yield* done(yield* submit(cause, "/park"))
      assert.match(ended.text, /parked<\/dt><dd><span class="strong">2<.*<dt>to<\/dt><dd>orders\.dlq\.parked</)
      assert.deepStrictEqual(yield* ids, ["new-2"])
      assert.deepStrictEqual(
        audit.flatMap(({ command, event, letter, to }) => (event === "letter" ? [[command, letter, to]] : [])),
        ["old-1", "new-1"].map((id) => ["console park", id, "orders.dlq.parked"])
      )
      const all = yield* filtered({})
      assert.include(all.text, ">2 letters parked<")
      const aside = yield* settled("/dead-letters?broker=local&queue=orders.dlq.parked")
      assert.include(aside.text, "These letters are parked.")
      const page = yield* settled("/dead-letters?broker=local&queue=orders.dlq.parked&id=old-1")
      yield* done(yield* submit(page, "/park"))
      assert.deepStrictEqual(
        (yield* World.shown(broker, "orders.dlq", 10))
          .map(({ metadata }) => metadata)
          .toSorted((a, b) => (a.id < b.id ? 1 : -1)),
        before.filter(({ id }) => id !== "new-1").toSorted((a, b) => (a.id < b.id ? 1 : -1))
      )
      const counted = yield* done(
        yield* submit(yield* settled("/dead-letters?broker=local&queue=orders.dlq.parked"), "/plan")
      )
      yield* done(yield* submit(counted, "/redrive", { how: "at-once" }))
      assert.strictEqual((yield* broker.admin.counts("orders")).ready, 1)
    })
  )

  it.effect("stay where they are when the audit fails", () =>
    Effect.gen(function* () {
      const audit = (line: string) => {
        if (line.includes(`"event":"letter"`)) throw new Error("the disk is full")
      }
      const { broker, publish, settled, submit } = yield* World.make({ audit })
      yield* publish({ id: "order-1" }, { id: "order-2" })
      const begun = yield* submit(yield* settled(World.deadLetters), "/park")
      assert.match((yield* settled(begun.headers.get("location")!)).text, /The job failed\..*the disk is full/)
      assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 2)
    })
  )
})

describe("a redrive to another queue", () => {
  it.effect("is chosen on the page of the dry run, which counts for that queue", () =>
    Effect.gen(function* () {
      const { audit, broker, done, filtered, submit } = yield* opened
      yield* broker.publish([{ ...World.outgoing({ id: "first" }, 0), queue: "mails" }])
      yield* broker.admin.purge("mails")
      const counted = yield* done(yield* submit(yield* filtered({ error: "shop" }), "/plan"))
      assert.notInclude(counted.text, `<option value="orders.dlq"`)
      const elsewhere = yield* done(yield* submit(counted, "/plan", { to: "mails" }))
      assert.include(elsewhere.text, "Redrive 2 letters to mails")
      const ended = yield* done(yield* submit(elsewhere, "/redrive", { how: "at-once" }))
      assert.match(ended.text, /<dt>to<\/dt><dd>mails</)
      assert.strictEqual((yield* broker.admin.counts("mails")).ready, 2)
      const letters = audit.filter(({ event }) => event === "letter")
      assert.deepStrictEqual(
        letters.map(({ to }) => to),
        ["mails", "mails"]
      )
    })
  )
})
