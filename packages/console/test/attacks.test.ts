/** Attacks on the console, and what stops each. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Authorization, type Console } from "../src/index.ts"
import * as World from "./world.ts"

const users = ["view", "bodies", "redrive", "purge"] as const
const password = (name: string) => `${name}-has-this-password`
const basic = Authorization.basic(users.map((name) => ({ name, password: password(name), role: name })))
const as = (name: string, secret = password(name)) => ({
  headers: { authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}` }
})

/** A console with a letter, and its pages of the way to a redrive, for whoever may see them. */
const prepared = (options: Partial<Console.Options> = {}, sent: World.Sent = {}) =>
  Effect.gen(function* () {
    const world = yield* World.make(options)
    yield* world.publish({ id: "order-1", body: "the-body" })
    const causes = yield* world.settled(World.deadLetters, sent)
    const cause = yield* world.get(World.linkTo(causes, "/group"), sent)
    const letter = yield* world.get(World.linkTo(cause, "/letter"), sent)
    return {
      ...world,
      causes,
      cause,
      letter,
      left: Effect.map(world.broker.admin.counts("orders.dlq"), ({ ready }) => ready)
    }
  })

const token = ({ text }: World.Arrived): string => /name="token" value="([^"]+)"/.exec(text)![1]!

const redrive = (page: World.Arrived) => ({ broker: "local", queue: "orders.dlq", how: "at-once", token: token(page) })

describe("who comes from elsewhere", () => {
  it.effect("is refused under a name that leads here: DNS rebinding", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      for (const host of [
        "evil.example",
        "localhost.evil.example:4747",
        "127.0.0.1.evil.example",
        "[::1].evil.example"
      ]) {
        const { status, text } = yield* get("/", { headers: { host } })
        assert.strictEqual(status, 421, host)
        assert.notInclude(text, "orders")
      }
      assert.strictEqual((yield* get("/", { headers: { host: "LOCALHOST:9" } })).status, 200)
    })
  )

  it.effect("is refused without authentication, also where a proxy's header says otherwise", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      for (const address of ["203.0.113.9", "::ffff:10.0.0.1", "", "127.0.0.1.evil.example"]) {
        const headers = { "x-forwarded-for": "127.0.0.1", forwarded: "for=127.0.0.1" }
        assert.strictEqual((yield* get("/", { address, headers })).status, 403, address)
      }
    })
  )

  it("is not served at all: other hosts want authentication", () => {
    assert.throws(
      () => World.make({ hosts: ["ops.example.com"] }).pipe(Effect.scoped, Effect.runSync),
      /authorize must be given/
    )
  })
})

describe("a page of another site", () => {
  const attempts: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
    ["a form", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
    ["a form of another port", { origin: "http://localhost:9999", "sec-fetch-site": "same-site" }],
    ["a sandboxed frame", { origin: "null", "sec-fetch-site": "cross-site" }],
    ["an old browser", { origin: "https://evil.example", "sec-fetch-site": "" }],
    ["nobody knows", { origin: "", "sec-fetch-site": "" }]
  ]
  for (const [name, headers] of attempts) {
    it.effect(`redrives nothing: ${name}`, () =>
      Effect.gen(function* () {
        const { causes, console, left, audit } = yield* prepared()
        const given = Object.entries({ ...headers, host: "localhost:4747" }).filter(([, value]) => value !== "")
        const request = new Request(`${World.origin}/redrive`, {
          method: "POST",
          headers: [...given, ["content-type", "application/x-www-form-urlencoded"]] as Array<[string, string]>,
          body: new URLSearchParams(redrive(causes)).toString()
        })
        const { status } = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
        assert.strictEqual(status, 403)
        assert.strictEqual(yield* left, 1)
        assert.deepStrictEqual(audit, [])
      })
    )
  }

  it.effect("reads nothing by a script, a frame or an image; a link is followed", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      const from = (mode: string, dest: string) => ({
        headers: { "sec-fetch-site": "cross-site", "sec-fetch-mode": mode, "sec-fetch-dest": dest }
      })
      assert.strictEqual((yield* get("/", from("no-cors", "script"))).status, 403)
      assert.strictEqual((yield* get("/", from("navigate", "iframe"))).status, 403)
      assert.strictEqual((yield* get("/", from("navigate", "document"))).status, 200)
    })
  )

  it.effect("cannot frame it, run anything in it, or be told of it", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      for (const path of ["/", "/nothing", World.deadLetters]) {
        const { headers, text } = yield* get(path)
        const policy = headers.get("content-security-policy")!
        assert.match(policy, /default-src 'none'/)
        assert.match(policy, /frame-ancestors 'none'/)
        assert.notMatch(policy, /unsafe|\*|data:/)
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(headers.get("referrer-policy"), "no-referrer")
        assert.strictEqual(headers.get("cache-control"), "no-store")
        assert.notMatch(text, /<style|<script(?! src=)|\son\w+=|\sstyle=|javascript:|https?:\/\/(?!www\.w3\.org)/)
      }
    })
  )
})

describe("a form without its token", () => {
  it.effect("does nothing, and neither does that of another operator or process", () =>
    Effect.gen(function* () {
      const { causes, left, post } = yield* prepared({ authorize: basic }, as("purge"))
      const other = yield* prepared({ authorize: basic }, as("purge"))
      const fields = redrive(causes)
      const { token: own, ...without } = fields
      const attempts = [
        [without, "purge"],
        [{ ...without, token: "" }, "purge"],
        [{ ...without, token: `${own.slice(0, -4)}AAAA` }, "purge"],
        [fields, "redrive"],
        [redrive(other.causes), "purge"]
      ] as const
      for (const [sent, name] of attempts) assert.strictEqual((yield* post("/redrive", sent, as(name))).status, 403)
      assert.strictEqual(yield* left, 1)
      assert.strictEqual((yield* post("/redrive", fields, as("purge"))).status, 303)
    })
  )
})

describe("who may less", () => {
  it.effect("does no more: view < bodies < redrive < purge", () =>
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
        const granted = told.map(({ text }) => text.includes("the form is not one of this process"))
        assert.deepStrictEqual(
          granted,
          users.map((_, role) => role <= index),
          name
        )
        assert.strictEqual(page.status, 200)
      }
      assert.strictEqual(yield* left, 2)
    })
  )

  it.effect("is nobody without the right password, and is not told which part is wrong", () =>
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
  )

  it.effect("cannot guess: after ten wrong passwords, right ones of that address are refused for a while", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make({ authorize: basic })
      for (let n = 0; n < 10; n++) yield* get("/", as("view", `guess-number-${n}`))
      assert.strictEqual((yield* get("/", as("view"))).status, 429)
      assert.strictEqual((yield* get("/", { ...as("view"), address: "127.0.0.2" })).status, 200)
    })
  )

  it.effect("is refused where the hook fails, or answers nonsense", () =>
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
  )
})

describe("a token of a script", () => {
  it.effect("is taken by bearer authentication alone", () =>
    Effect.gen(function* () {
      const authorize = Authorization.bearer([{ name: "alerts", token: "a-long-token-of-a-script", role: "view" }])
      const { get } = yield* World.make({ authorize })
      const bearer = (value: string) => ({ headers: { authorization: `Bearer ${value}` } })
      assert.strictEqual((yield* get("/", bearer("a-long-token-of-a-script"))).status, 200)
      assert.strictEqual((yield* get("/", bearer("a-long-token-of-a-scrip"))).status, 401)
      assert.strictEqual((yield* get("/?access_token=a-long-token-of-a-script")).status, 401)
    })
  )

  it("is long, and so is a password", () => {
    assert.throws(() => Authorization.bearer([{ name: "a", token: "short", role: "view" }]), /at least 12 characters/)
    assert.throws(() => Authorization.basic([{ name: "a", password: "short", role: "view" }]), /at least 12 characters/)
    assert.throws(() => Authorization.basic([]), /at least one/)
  })
})

describe("a sender of much", () => {
  it.effect("has no form read beyond its limit, whatever its length says", () =>
    Effect.gen(function* () {
      const { console, left } = yield* prepared()
      let sent = 0
      const endless = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          sent += 4096
          controller.enqueue(new Uint8Array(4096))
        }
      })
      const init = { method: "POST", body: endless, duplex: "half" }
      const headers = { ...World.own, host: "localhost:4747", "content-type": "application/x-www-form-urlencoded" }
      const request = new Request(`${World.origin}/redrive`, { ...init, headers } as RequestInit) // The type lacks `duplex`.
      const { status } = yield* Effect.promise(() => console.fetch(request, { address: "127.0.0.1" }))
      assert.strictEqual(status, 413)
      assert.isBelow(sent, 64 * 1024)
      assert.strictEqual(yield* left, 1)
    })
  )

  it.effect("is told to wait, and others are served", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      const answers = yield* Effect.forEach(Array.from({ length: 220 }), () => get("/jobs"))
      assert.strictEqual(answers.at(-1)!.status, 429)
      assert.isNotNull(answers.at(-1)!.headers.get("retry-after"))
      assert.strictEqual((yield* get("/jobs", { address: "127.0.0.2" })).status, 200)
    })
  )

  it.effect("is refused what is no form", () =>
    Effect.gen(function* () {
      const { post } = yield* World.make()
      const { status } = yield* post("/look", {}, { headers: { "content-type": "text/plain" } })
      assert.strictEqual(status, 415)
    })
  )
})

describe("an audit that cannot be written", () => {
  it.effect("lets nothing happen", () =>
    Effect.gen(function* () {
      const audit = () => Promise.reject(new Error("the disk is full"))
      const { causes, left, letter, post, submit } = yield* prepared({
        audit,
        authorize: Authorization.everybody("root", "purge")
      })
      const body = yield* submit(letter, "/letter")
      assert.strictEqual(body.status, 503)
      assert.notInclude(body.text, "the-body")
      assert.strictEqual((yield* post("/redrive", redrive(causes))).status, 503)
      assert.strictEqual((yield* post("/purge", { ...redrive(causes), name: "orders.dlq" })).status, 503)
      assert.strictEqual(yield* left, 1)
    })
  )

  it.effect("does not even look for a body whose first line is missing", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const audit = (line: string) => {
        lines.push(line)
        if (line.includes(`"begin"`)) throw new Error("full")
      }
      const { letter, submit } = yield* prepared({ audit })
      const { status, text } = yield* submit(letter, "/letter")
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
      assert.lengthOf(lines, 1)
    })
  )

  it.effect("shows no body whose last line is missing", () =>
    Effect.gen(function* () {
      const audit = (line: string) => (line.includes(`"end"`) ? Promise.reject(new Error("full")) : undefined)
      const { letter, submit } = yield* prepared({ audit: audit as Console.Options["audit"] }) // Answers nothing, or rejects.
      const { status, text } = yield* submit(letter, "/letter").pipe(Effect.map((page) => page))
      assert.strictEqual(status, 503)
      assert.notInclude(text, "the-body")
    })
  )
})

describe("a purge", () => {
  it.effect("wants the queue's name, letter by letter", () =>
    Effect.gen(function* () {
      const { causes, left, settled, submit } = yield* prepared({ authorize: Authorization.everybody("root", "purge") })
      assert.strictEqual((yield* submit(causes, "/purge", { name: "orders" })).status, 400)
      assert.strictEqual(yield* left, 1)
      const begun = yield* submit(causes, "/purge", { name: "orders.dlq" })
      assert.match((yield* settled(begun.headers.get("location")!)).text, /removed<\/dt><dd><span class="strong">1</)
      assert.strictEqual(yield* left, 0)
    })
  )

  it.effect("of a cause leaves the others", () =>
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
})

describe("an operator behind a proxy that ends TLS", () => {
  it.effect("is served under the host that is listed, and no other", () =>
    Effect.gen(function* () {
      const { console } = yield* World.make({ authorize: basic, hosts: ["ops.example.com"] })
      const asked = (host: string, origin: string, fields: Readonly<Record<string, string>>) =>
        Effect.promise(async () => {
          const headers = { host, origin, "sec-fetch-site": "same-origin", ...as("purge").headers }
          const form = { "content-type": "application/x-www-form-urlencoded" }
          const body = new URLSearchParams({ broker: "local", queue: "orders.dlq", ...fields }).toString()
          const init = { method: "POST", headers: { ...headers, ...form }, body }
          return (await console.fetch(new Request("http://10.0.0.5:8080/look", init))).status
        })
      const page = yield* Effect.promise(async () => {
        const headers = { host: "ops.example.com", ...as("purge").headers }
        const url = "http://10.0.0.5:8080/dead-letters?broker=local&queue=orders.dlq"
        const answers = [
          await console.fetch(new Request(url, { headers })),
          await console.fetch(new Request(url, { headers }))
        ]
        return answers[1]!.text()
      })
      const [, value = ""] = /name="token"\s+value="([^"]+)"/.exec(page) ?? []
      assert.strictEqual(yield* asked("ops.example.com", "https://ops.example.com", { token: value }), 303)
      assert.strictEqual(yield* asked("ops.example.com:8443", "https://ops.example.com:8443", { token: value }), 303)
      assert.strictEqual(yield* asked("10.0.0.5:8080", "http://10.0.0.5:8080", { token: value }), 421)
      assert.strictEqual(yield* asked("localhost", "http://localhost", { token: value }), 421)
    })
  )
})

describe("a letter of somebody who means harm", () => {
  it.effect("is shown as text, wherever it stands", () =>
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
  )

  it.effect("is shown in part where it is large, and as hexadecimal digits where it is no text", () =>
    Effect.gen(function* () {
      const { get, publish, settled, submit } = yield* World.make()
      yield* publish({ id: "large", body: JSON.stringify({ a: "x".repeat(5_000_000) }) })
      yield* publish({ id: "bytes", body: Uint8Array.from([0xff, 0x00, 0x3c, 0x62, 0x3e]) })
      const cause = yield* Effect.flatMap(settled(World.deadLetters), (causes) => get(World.linkTo(causes, "/group")))
      const links = [...cause.text.matchAll(/href="(\/letter[^"]+)"/g)].map(([, href]) => World.decoded(href!))
      const shown = yield* Effect.forEach(links, (href) => Effect.flatMap(get(href), (page) => submit(page, "/letter")))
      assert.isBelow(shown[0]!.text.length, 200_000)
      assert.include(shown[0]!.text, "of which the beginning is shown")
      assert.include(World.decoded(shown[1]!.text), "ff 00 3c 62 3e")
    })
  )

  it.effect("is hidden whole where the redact hook fails", () =>
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
})

describe("an address that was made up", () => {
  it.effect("leads to no queue that is not one for dead letters of the configuration", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make()
      for (const query of [
        "",
        "?broker=local&queue=orders",
        "?broker=local&queue=payroll",
        "?broker=__proto__&queue=x"
      ]) {
        assert.strictEqual((yield* get(`/dead-letters${query}`)).status, 404, query)
      }
      for (const path of ["/assets/../package.json", "/assets/console.css", "/%2e%2e/etc", "/job?id=__proto__"]) {
        assert.strictEqual((yield* get(path)).status, 404, path)
      }
    })
  )

  it.effect("does nothing by GET", () =>
    Effect.gen(function* () {
      const { causes, get, left } = yield* prepared()
      const query = new URLSearchParams(redrive(causes)).toString()
      for (const path of ["/redrive", "/plan", "/purge", "/stop", "/look"]) {
        assert.strictEqual((yield* get(`${path}?${query}`)).status, 405)
      }
      assert.strictEqual(yield* left, 1)
    })
  )
})
