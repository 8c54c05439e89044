/** Hooks that fail at letters, and errors with secrets of which a pattern hides a part. */
import { TestClock } from "effect/testing"
import { assert } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Authorization, type Redaction } from "../../src/index.ts"
import * as Shown from "../../src/internal/shown.ts"
import * as Downloading from "../downloading.ts"
import * as Waiting from "../waiting.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic } from "./prepared.ts"

const place = { broker: "local", queue: "orders.dlq" }

/** A hook that fails at what is bad, and quotes it. */
type Failing = (content: Redaction.Content) => Redaction.Content

const quoted = ({ error }: Redaction.Content): Error => new Error(`no idea of ${error?.message}`)

const failing: ReadonlyArray<readonly [string, Failing]> = [
  [
    "throws",
    (content) => {
      throw quoted(content)
    }
  ],
  [
    "has a getter that throws",
    (content) => ({
      ...content,
      get headers(): never {
        throw quoted(content)
      }
    })
  ],
  [
    "answers a proxy that throws",
    (content) =>
      new Proxy(content, {
        get: () => {
          throw quoted(content)
        }
      })
  ]
]

const isBad = ({ error, id }: Redaction.Content): boolean =>
  id === "order-bad" || error?.message.includes("hunter2") === true

/** Two letters, and a hook that fails at one of them. */
const mixed = (fail: Failing) =>
  Effect.gen(function* () {
    const world = yield* World.make({
      authorize: Authorization.everybody("root", "purge"),
      redact: (content) => (isBad(content) ? fail(content) : content)
    })
    yield* world.publish({ id: "order-bad", error: `card "hunter2"`, body: "hunter2" }, { id: "order-good" })
    return world
  })

/** Errors of which a pattern leaves a part of a secret; that part is `SECRET`. */
const errors = [
  "login failed password=s3SECRET user=x",
  "password=hunter2SECRET for bob",
  "token=/etc/foo/SECRETpath",
  "password=10.0.0.7SECRET x",
  "password=550e8400-e29b-41d4-a716-446655440000SECRET",
  `password=a"b"SECRET`,
  "Authorization: Basic dXNlcjpwYXNzMTIzSECRET==",
  "Cookie: sid=12SECRET; b=34SECRET",
  "secret=12msSECRET",
  "broker said c0nf1gured9SECRET"
]

const secrets = ["c0nf1gured9SECRET"]

/** A hook that takes 5 ms for a letter, as its clock says, and the most letters that it gets in a turn of the event loop. */
const slow = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  let [spent, inTurn, most] = [0n, 0, 0]
  const turn = (): NodeJS.Immediate =>
    setImmediate(() => {
      inTurn = 0
      next = turn()
    })
  let next = turn()
  yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
  const redact: Redaction.Redact = (content) => {
    spent += 5_000_000n
    most = Math.max(most, ++inTurn)
    return content
  }
  const own = Object.assign({}, clock, {
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + spent
  })
  return { clock: own, redact, most: () => most }
})

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  ...failing.map(([name, fail]) =>
    Attack.make(`a letter at which the redact hook fails: leaves all others, and is hidden, where it ${name}`, () =>
      Effect.gen(function* () {
        const { audit, broker, console, get, settled, submit } = yield* mixed(fail)
        const page = yield* settled(`${World.deadLetters}&id=order-*`)
        assert.include(page.text, "<b>1 letter found.</b>")
        const plan = yield* Effect.flatMap(submit(page, "/plan"), ({ headers }) => settled(headers.get("location")!))
        assert.match(plan.text, /would be redriven<.{0,40}>1</)
        const causes = yield* settled(World.deadLetters)
        const links = [...causes.text.matchAll(/href="(\/group[^"]+)"/g)].map(([, href]) => World.decoded(href!))
        assert.lengthOf(links, 2)
        const groups = yield* Effect.forEach(links, (link) => get(link))
        assert.deepStrictEqual(
          groups.map(({ status }) => status),
          [200, 200]
        )
        const token = Downloading.tokenOf(causes)
        const { isWhole, text } = yield* Effect.flatMap(Downloading.ask(console, { token }), Downloading.read)
        assert.isTrue(isWhole)
        assert.lengthOf(text.trimEnd().split("\n"), 2)
        assert.include(text, "order-good")
        const done = []
        for (const path of ["/park", "/purge"]) {
          const begun = yield* submit(page, path, { name: "orders.dlq" })
          done.push(yield* settled(begun.headers.get("location")!))
        }
        for (const each of [page, plan, causes, ...groups, ...done, { text }, { text: JSON.stringify(audit) }]) {
          assert.notMatch(each.text, /hunter2|no idea|failed\./)
        }
        assert.strictEqual((yield* broker.admin.counts("orders.dlq")).ready, 1)
      })
    )
  ),
  Attack.make("a redact hook that fails: is quoted to nobody", () =>
    Effect.sync(() => {
      for (const [name, fail] of failing) {
        const redact = Shown.guarded(fail, [])
        const content = { headers: {}, id: "a", error: { name: "Error", message: "hunter2" } }
        let told = ""
        try {
          redact(content, place)
        } catch (error) {
          told = String(error)
        }
        assert.match(told, /the redact hook failed/, name)
        assert.notInclude(told, "hunter2")
      }
      let reads = 0
      const changing: Failing = (content) => ({
        ...content,
        get id() {
          if (++reads > 1) throw quoted(content)
          return content.id
        }
      })
      const { id } = Shown.guarded(changing, [])({ headers: {}, id: "a" }, place)
      assert.strictEqual(id, "a")
    })
  ),
  Attack.make("a redact hook that is slow: stops nobody else in the process", () =>
    Effect.gen(function* () {
      const { clock, most, redact } = yield* slow
      const visit = Effect.gen(function* () {
        const authorize = Authorization.everybody("root", "purge")
        const { broker, console, get, publish, settled, submit } = yield* World.make({ authorize, redact })
        yield* publish(...Array.from({ length: 60 }, (_, n) => ({ id: `order-${n}` })))
        yield* broker.publish(
          Array.from({ length: 60 }, (_, n) => Waiting.waiting({ id: `order-${n}`, delay: 60_000 }, 0))
        )
        const found = yield* settled(`${World.deadLetters}&id=order-*`)
        assert.include(found.text, "<b>60 letters found.</b>")
        assert.isAtMost(most(), 15, "a look")
        yield* Effect.flatMap(submit(found, "/plan"), ({ headers }) => settled(headers.get("location")!))
        assert.isAtMost(most(), 15, "a dry run")
        yield* get(World.linkTo(found, "/group"))
        assert.isAtMost(most(), 15, "a cause")
        yield* Effect.flatMap(get(Waiting.page), (page) => submit(page, "/delayed"))
        assert.isAtMost(most(), 15, "messages in backoff")
        const token = Downloading.tokenOf(found)
        yield* Effect.flatMap(Downloading.ask(console, { token }), Downloading.read)
        assert.isAtMost(most(), 15, "an export")
      })
      // A count waits for a moment where a look has the letters.
      const passing = Effect.forever(Effect.andThen(TestClock.adjust("50 millis"), Effect.yieldNow))
      yield* Effect.raceFirst(Effect.provideService(visit, Clock.Clock, clock), passing)
    })
  ),
  Attack.make("an error with a secret: is shown without all of it, and not without a part: of letters", () =>
    Effect.gen(function* () {
      const { audit, broker, get, settled, submit } = yield* World.make({ authorize: basic }, {}, secrets)
      yield* broker.publish(
        errors.map((error, index) => {
          const letter = World.outgoing({ id: `order-${index}`, error }, 0)
          const history = [{ attempt: 1, at: 0, delay: 1000, error: `Error: ${error}` }]
          return { ...letter, metadata: { ...letter.metadata, history } }
        })
      )
      for (const role of ["view", "redrive"]) {
        const causes = yield* settled(World.deadLetters, as(role))
        assert.notInclude(causes.text, "SECRET")
        const links = [...causes.text.matchAll(/href="(\/group[^"]+)"/g)].map(([, href]) => World.decoded(href!))
        assert.lengthOf(links, errors.length)
        for (const link of links) {
          const cause = yield* get(link, as(role))
          const letter = yield* get(World.linkTo(cause, "/letter"), as(role))
          for (const { text } of [cause, letter]) assert.notInclude(text, "SECRET")
        }
        const cause = yield* get(links[0]!, as(role))
        const plan = yield* submit(cause, "/plan", {}, as(role))
        if (role === "view") assert.strictEqual(plan.status, 403)
        else assert.notInclude((yield* settled(plan.headers.get("location")!, as(role))).text, "SECRET")
      }
      assert.notInclude(JSON.stringify(audit), "SECRET")
    })
  ),
  Attack.make("an error with a secret: is shown without all of it, and not without a part: to whoever filters", () =>
    Effect.gen(function* () {
      const { publish, settled } = yield* World.make({ authorize: basic }, {}, secrets)
      yield* publish(...errors.map((error, index) => ({ id: `order-${index}`, error })))
      const { text } = yield* settled(`${World.deadLetters}&error=${encodeURIComponent("<num>SECRET")}`, as("view"))
      assert.include(text, "<b>0 letters found.</b>")
    })
  ),
  Attack.make(
    "an error with a secret: is shown without all of it, and not without a part: of messages in backoff",
    () =>
      Effect.gen(function* () {
        const { broker, get, submit } = yield* World.make({ authorize: basic }, {}, secrets)
        yield* broker.publish(
          errors.map((error, index) => Waiting.waiting({ id: `order-${index}`, delay: 60_000, error }, 0))
        )
        for (const role of ["view", "purge"]) {
          const page = yield* get(Waiting.page, as(role))
          const { text } = yield* submit(page, "/delayed", {}, as(role))
          assert.include(text, "order-1")
          assert.notInclude(text, "SECRET")
        }
      })
  ),
  Attack.make("an error with a secret: is shown without all of it, and not without a part: of events", () =>
    Effect.gen(function* () {
      const { console, get } = yield* World.make({ authorize: basic }, {}, secrets)
      const hook = console.onEvent("local")
      for (const message of errors) {
        const error = { name: "Error", message }
        hook({ _tag: "AttemptFailed", queue: "orders", id: "order-1", attempts: 1, error, willRerun: false })
      }
      for (const role of ["view", "bodies"]) {
        const { text } = yield* get("/events", as(role))
        assert.include(text, "order-1")
        assert.notInclude(text, "SECRET")
      }
    })
  )
]
