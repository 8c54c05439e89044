/** Letters that look alike: sent with one id, and given up in the same millisecond. */
import { assert } from "@effect/vitest"
import { Broker, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import { Authorization, Redaction } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"

/** The console with these letters, and the addresses of the rows of their cause. */
const opened = (letters: ReadonlyArray<World.Letter>) =>
  Effect.gen(function* () {
    const authorize = Authorization.everybody("ann", "purge")
    const world = yield* World.make({ authorize, redact: Redaction.none })
    yield* world.publish(...letters)
    const cause = yield* world.get(World.linkTo(yield* world.settled(World.deadLetters), "/group"))
    const links = [...cause.text.matchAll(/href="(\/letter[^"]+)"/g)].map(([, href]) => World.decoded(href!))
    const bodies = (queue = "orders.dlq") =>
      Effect.map(World.shown(world.broker, queue, 10), (all) =>
        all.map(({ body, headers }) => `${new TextDecoder().decode(body)}${headers["tenant"] ?? ""}`).toSorted()
      )
    const done = ({ headers, status, text }: World.Arrived) =>
      status === 303 ? world.settled(headers.get("location")!) : Effect.die(new Error(text))
    return { ...world, links, bodies, done }
  })

const letters: ReadonlyArray<World.Letter> = [
  ...[1, 2, 3].map((body) => ({ id: "same", body: `${body}` })),
  { id: "same", body: "3", headers: { tenant: "acme" } }
]

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("letters with one id: have an address each, and what is done is done to that one", () =>
    Effect.gen(function* () {
      const { bodies, broker, done, get, links, settled, submit } = yield* opened(letters)
      assert.lengthOf([...new Set(links)], 4)
      const second = yield* get(links[1]!)
      assert.include(second.text, "<dt>letters with this id</dt><dd>4<")
      assert.match((yield* submit(second, "/letter")).text, /aria-label="Body">2</)
      const editor = yield* submit(second, "/edit")
      const preview = yield* submit(editor, "/edit/preview", { headers: "", body: "22" })
      yield* Effect.provideService(
        Consumer.start<unknown>("orders", {}, () => undefined),
        Broker.Broker,
        broker
      )
      const edited = yield* settled((yield* submit(preview, "/edit/send")).headers.get("location")!)
      assert.include(edited.text, "is removed")
      assert.deepStrictEqual(yield* bodies(), ["1", "3", "3acme"])
      yield* settled(World.deadLetters)
      yield* done(yield* submit(yield* get(links[3]!), "/park"))
      assert.deepStrictEqual(yield* bodies(), ["1", "3"])
      assert.deepStrictEqual(yield* bodies("orders.dlq.parked"), ["3acme"])
    })
  ),
  Attack.make("letters that are alike in all: one is meant, and the page says how many there are", () =>
    Effect.gen(function* () {
      const alike = ["1", "1", "1", "2"].map((body) => ({ id: "same", body }))
      const { audit, bodies, done, get, links, post, settled, submit } = yield* opened(alike)
      const first = yield* get(links[0]!)
      assert.include(first.text, "4, 3 of them identical: an action takes one of those")
      const counted = yield* done(yield* submit(first, "/plan"))
      yield* done(yield* submit(counted, "/redrive", { how: "at-once" }))
      assert.deepStrictEqual(yield* bodies(), ["1", "1", "2"])
      yield* settled(World.deadLetters)
      const fields = Object.fromEntries(new URL(links[0]!, World.origin).searchParams)
      const token = /name="token" value="([^"]+)"/.exec(first.text)![1]!
      assert.strictEqual((yield* post("/purge", { ...fields, name: "orders.dlq", token })).status, 400)
      const { text } = yield* post("/export", { ...fields, token })
      assert.lengthOf(text.trim().split("\n"), 1)
      yield* done(yield* submit(yield* get(links[0]!), "/park"))
      assert.deepStrictEqual(yield* bodies(), ["1", "2"])
      assert.lengthOf(
        audit.filter(({ event }) => event === "letter"),
        2
      )
    })
  )
]
