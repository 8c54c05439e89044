/** Letters of somebody who means harm. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Redaction } from "../../src/index.ts"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, prepared } from "./prepared.ts"

const utf16 = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"))

/** Bodies with the secret `hunter2`, each in a form of its own. */
const secretive: ReadonlyArray<readonly [string, string | Uint8Array]> = [
  ["a key", `{"a":[{"Password":"hunter2"}]}`],
  ["keys of few letters", `{"pwd":"hunter2","x-auth":"hunter2","jwt":"hunter2","pin":"hunter2","pan":"hunter2"}`],
  [
    "keys of several words",
    `{"accessKey":"hunter2","api key":"hunter2","credit_card":"hunter2","card.number":"hunter2"}`
  ],
  ["a key within another", `{"card":{"holder":"ann","number":"hunter2"},"api":{"key":"hunter2"}}`],
  ["JSON in a text", JSON.stringify({ payload: JSON.stringify({ inner: JSON.stringify({ token: "hunter2" }) }) })],
  ["JSON that was encoded twice", JSON.stringify(JSON.stringify({ password: "hunter2" }))],
  ["JSON with a comma too many", `{"password": "hun\\"hunter2", "a": 1,}`],
  ["JSON that was cut", `{"a": 1, "password": "hunter2`],
  ["JSON with parts that was cut", `{"a": 1, "credentials": {\n"is": ["hunter2"`],
  ["JSON in a line of a log", String.raw`ERROR body="{\"password\":\"hunter2\"}" failed`],
  ["a value for each line", `{"a":1}\n{"card":{"number":"hunter2"}}\n`],
  ["a form", "user=ann&pass%77ord=hunter2&user[password]=hunter2&q=1"],
  ["XML", `<a><password kind="x">hunter2</password><b token="hunter2"/><pwd><![CDATA[hunter2]]></pwd></a>`],
  ["names and values", `[{"name":"password","value":"hunter2"},["Authorization","hunter2"]]`],
  ["headers in a text", "GET / HTTP/1.1\nAuthorization: Bearer hunter2\nCookie: a=hunter2; b=hunter2\n\n"],
  ["a value that says what it is", `{"h":"Bearer hunter2.hunter2","url":"amqp://ann:hunter2@host/","dsn":"x"}`],
  ["a connection string", "Server=db;User Id=ann;Password=hunter2;"],
  ["bytes", new Uint8Array([0xff, ...Buffer.from("password=hunter2")])],
  ["UTF-16", utf16(`{"password":"hunter2"}`)]
]

/** Whether a page has it, in whatever form. */
const tells = ({ text }: World.Arrived) => {
  const digits = Buffer.from("hunter2").toString("hex").match(/../g)!.join(" ")
  return /hunter2|h\.u\.n\.t/.test(World.decoded(text)) || text.includes(digits)
}

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  ...secretive.map(([name, body]) =>
    Attack.make(`a body with a secret: is shown without it: ${name}`, () =>
      Effect.gen(function* () {
        const { get, publish, settled, submit } = yield* World.make()
        yield* publish({ id: "order-1", body, headers: { payload: typeof body === "string" ? body : "" } })
        const causes = yield* settled(World.deadLetters)
        const letter = yield* Effect.flatMap(get(World.linkTo(causes, "/group")), (cause) =>
          get(World.linkTo(cause, "/letter"))
        )
        const shown = yield* submit(letter, "/letter")
        assert.strictEqual(shown.status, 200)
        assert.include(shown.text, "redacted")
        assert.isFalse(tells(shown), shown.text)
      })
    )
  ),
  Attack.make("a body with a secret: says it in no error, id, header or history, to no role, nor in a job", () =>
    Effect.gen(function* () {
      const { broker, get, settled, submit } = yield* World.make({ authorize: basic })
      const error = `no login with amqp://ann:hunter2@shop/ and {"password":"hunter2"}`
      const letter = World.outgoing({ id: "password=hunter2", error, headers: { note: "pwd: hunter2" } }, 0)
      const history = [{ attempt: 1, at: 0, delay: 1000, error: `Error: ${error}` }]
      yield* broker.publish([{ ...letter, metadata: { ...letter.metadata, history } }])
      const causes = yield* settled(World.deadLetters, as("redrive"))
      const cause = yield* get(World.linkTo(causes, "/group"), as("redrive"))
      const page = yield* get(World.linkTo(cause, "/letter"), as("redrive"))
      const plan = yield* submit(cause, "/plan", {}, as("redrive"))
      const job = yield* settled(plan.headers.get("location")!, as("redrive"))
      for (const each of [causes, cause, page, job]) assert.isFalse(tells(each), each.text)
    })
  ),
  Attack.make("a body with a secret: says no secret of the configuration, wherever it stands in letters", () =>
    Effect.gen(function* () {
      const body = `{"note":"it is hunter2"}`
      const { audit, get, publish, settled, submit } = yield* World.make({}, {}, ["hunter2"])
      yield* publish({ id: "id-hunter2", body, error: "no hunter2 here", headers: { "x-hunter2": "a hunter2" } })
      const causes = yield* settled(World.deadLetters)
      const cause = yield* get(World.linkTo(causes, "/group"))
      const letter = yield* get(World.linkTo(cause, "/letter"))
      const shown = yield* submit(letter, "/letter")
      const plan = yield* submit(cause, "/plan")
      const job = yield* settled(plan.headers.get("location")!)
      for (const each of [causes, cause, letter, shown, job]) assert.isFalse(tells(each), each.text)
      assert.notInclude(JSON.stringify(audit.filter(({ command }) => command === "console plan")), "hunter2")
    })
  ),
  Attack.make("a body with a secret: is quoted by its error to nobody who may not see bodies", () =>
    Effect.gen(function* () {
      const { broker, get, settled } = yield* World.make({ authorize: basic })
      const error = `Unexpected token 'i', "it is hunter2" is not valid JSON`
      const letter = World.outgoing({ id: "order-1", error }, 0)
      const history = [{ attempt: 1, at: 0, delay: 1000, error: `SyntaxError: ${error}` }]
      yield* broker.publish([{ ...letter, metadata: { ...letter.metadata, history } }])
      const asked = (role: string) =>
        Effect.gen(function* () {
          const causes = yield* settled(World.deadLetters, as(role))
          const cause = yield* get(World.linkTo(causes, "/group"), as(role))
          return [causes, cause, yield* get(World.linkTo(cause, "/letter"), as(role))]
        })
      assert.deepStrictEqual((yield* asked("view")).map(tells), [false, false, false])
      assert.deepStrictEqual((yield* asked("bodies")).map(tells), [false, true, true])
    })
  ),
  Attack.make("a letter of somebody who means harm: looks like no other one", () =>
    Effect.gen(function* () {
      const { get, publish, settled } = yield* World.make()
      const unseen = Array.from("\u200b\u00ad\ufeff\u2060\u202e\u2066\u200d\u3164\u2028\u{e0041}\u2800\u001b\u034f")
      yield* publish(...unseen.map((char) => ({ id: `order${char}-1` })))
      const causes = yield* settled(World.deadLetters)
      const { text } = yield* get(World.linkTo(causes, "/group"))
      assert.lengthOf([...text.matchAll(/>order\ufffd-1</g)], unseen.length)
    })
  ),
  Attack.make("a letter of somebody who means harm: is asked of the redact hook whole, and bytes as bytes", () =>
    Effect.gen(function* () {
      const redact: Redaction.Redact = () => ({ headers: {}, body: "all is hidden" })
      const { get, publish, settled, submit } = yield* World.make({ redact })
      yield* publish({ id: "hunter2", body: new Uint8Array([0xff, ...Buffer.from("hunter2")]), error: "no hunter2" })
      const causes = yield* settled(World.deadLetters)
      const cause = yield* get(World.linkTo(causes, "/group"))
      const letter = yield* get(World.linkTo(cause, "/letter"))
      const shown = yield* submit(letter, "/letter")
      assert.include(shown.text, "all is hidden")
      for (const each of [causes, cause, letter, shown]) assert.isFalse(tells(each), each.text)
    })
  ),
  ...["nothing", "a promise", "no headers", "a value with a cycle"].map((name, index) =>
    Attack.make(`a letter of somebody who means harm: is hidden whole where the redact hook answers ${name}`, () =>
      Effect.gen(function* () {
        const cycle: Record<string, unknown> = {}
        cycle["cycle"] = cycle
        const answers = [
          undefined,
          Promise.resolve({ headers: {} }),
          { body: "the-body" },
          { headers: {}, body: cycle }
        ]
        const redact: Redaction.Redact = (content) => (content.body === undefined ? content : (answers[index] as never)) // What a hook in JavaScript may answer.
        const { letter, submit } = yield* prepared({ redact })
        const { status, text } = yield* submit(letter, "/letter")
        assert.strictEqual(status, 503)
        assert.notInclude(text, "the-body")
      })
    )
  ),
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
        const { get, publish, settled, submit } = yield* World.make({ redact: Redaction.none })
        yield* publish({ id: "large", body: JSON.stringify({ a: "x".repeat(250_000) }) })
        yield* publish({ id: "bytes", body: Uint8Array.from([0xff, 0x00, 0x3c, 0x62, 0x3e]) })
        const cause = yield* Effect.flatMap(settled(World.deadLetters), (causes) => get(World.linkTo(causes, "/group")))
        const links = [...cause.text.matchAll(/href="(\/letter[^"]+)"/g)].map(([, href]) => World.decoded(href!))
        const shown = yield* Effect.forEach(links, (href) =>
          Effect.flatMap(get(href), (page) => submit(page, "/letter"))
        )
        assert.isBelow(shown[0]!.text.length, 200_000)
        assert.include(shown[0]!.text, "the beginning is shown")
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
