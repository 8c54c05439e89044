/** Requests from other machines, other names and other addresses. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as World from "../world.ts"
import * as Attack from "./Attack.ts"
import { as, basic, prepared, redrive } from "./prepared.ts"

/** These attacks. */
export const attacks: ReadonlyArray<Attack.Attack> = [
  Attack.make("who comes from elsewhere: is refused under a name that leads here: DNS rebinding", () =>
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
  ),
  Attack.make(
    "who comes from elsewhere: is refused without authentication, also where a proxy's header says otherwise",
    () =>
      Effect.gen(function* () {
        const { get } = yield* World.make()
        for (const address of ["203.0.113.9", "::ffff:10.0.0.1", "", "127.0.0.1.evil.example"]) {
          for (const headers of [{}, { "x-forwarded-for": "127.0.0.1", forwarded: "for=127.0.0.1" }]) {
            assert.strictEqual((yield* get("/", { address, headers })).status, 403, address)
          }
        }
      })
  ),
  ...["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"].map((name) =>
    Attack.make(`who comes from elsewhere: is refused without authentication, also through a proxy here: ${name}`, () =>
      Effect.gen(function* () {
        const { get } = yield* World.make()
        assert.strictEqual((yield* get("/", { headers: { [name]: "127.0.0.1" } })).status, 403)
      })
    )
  ),
  Attack.make("who comes from elsewhere: is told by proxies that are configured, and by nobody else", () =>
    Effect.gen(function* () {
      const { get } = yield* World.make({ authorize: basic, proxies: ["10.0.0.0/8", "127.0.0.1"] })
      const from = (address: string, told: string) =>
        get("/jobs", { address, headers: { ...as("view").headers, "x-forwarded-for": told } })
      const many = (address: string, told: (n: number) => string) =>
        Effect.map(
          Effect.forEach(Array.from({ length: 220 }), (_, n) => from(address, told(n))),
          (answers) => answers.at(-1)!.status
        )
      // The client behind two proxies; what it says itself of others changes nothing.
      assert.strictEqual(yield* many("127.0.0.1", (n) => `192.0.2.${n}, 203.0.113.9, 10.0.0.7`), 429)
      assert.strictEqual((yield* from("127.0.0.1", "203.0.113.8, 10.0.0.7")).status, 200)
      // Others say what they like, and have all the addresses of their network.
      assert.strictEqual(yield* many("203.0.113.7", (n) => `192.0.2.${n}`), 429)
      assert.strictEqual(yield* many("127.0.0.1", (n) => `2001:db8::${n + 1}`), 429)
      assert.strictEqual((yield* from("127.0.0.1", "2001:db8:0:1::1")).status, 200)
    })
  ),
  Attack.make("who comes from elsewhere: is not served at all: proxies are addresses", () =>
    Effect.sync(() => {
      for (const proxy of ["proxy.example", "10.0.0.0/33", "10.0.0.0/x", "", "::1/129"]) {
        assert.throws(() => World.make({ proxies: [proxy] }).pipe(Effect.scoped, Effect.runSync), /proxies must be/)
      }
    })
  ),
  Attack.make("who comes from elsewhere: is not served at all: other hosts want authentication", () =>
    Effect.sync(() => {
      assert.throws(
        () => World.make({ hosts: ["ops.example.com"] }).pipe(Effect.scoped, Effect.runSync),
        /needs authorize/
      )
    })
  ),
  Attack.make(
    "an address that was made up: leads to no queue that is not one for dead letters of the configuration",
    () =>
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
  ),
  Attack.make("an address that was made up: does nothing by GET", () =>
    Effect.gen(function* () {
      const { causes, get, left } = yield* prepared()
      const query = new URLSearchParams(redrive(causes)).toString()
      for (const path of ["/redrive", "/plan", "/purge", "/stop", "/look"]) {
        assert.strictEqual((yield* get(`${path}?${query}`)).status, 405)
      }
      assert.strictEqual(yield* left, 1)
    })
  ),
  Attack.make("an operator behind a proxy that ends TLS: is served under the host that is listed, and no other", () =>
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
]
