import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { PostgresOptions } from "../src/index.ts"

const decoded = (options: PostgresOptions.Options) => Result.getOrThrow(PostgresOptions.decode(options))

const failure = (options: PostgresOptions.Options) => {
  const result = PostgresOptions.decode(options)
  return Result.isFailure(result) ? result.failure : undefined
}

describe("PostgresOptions.decode", () => {
  it("has defaults", () => {
    const { address, ...rest } = decoded({})
    assert.deepStrictEqual(rest, { schema: "requeue", create: true, notify: true, lease: 30_000, timeout: 10_000 })
    const { password, ...place } = address
    assert.deepStrictEqual(place, {
      host: "127.0.0.1",
      port: 5432,
      database: "postgres",
      user: "postgres",
      tls: undefined
    })
    assert.isUndefined(password)
  })

  it("reads the URL, and options override its query", () => {
    const url = "postgresql://me:p%40ss@[::1]:6543/my%2Fdb?schema=jobs&lease=5s&notify=false"
    assert.strictEqual(failure({ url })?.field, "url")
    const settings = decoded({ url: url.replace("%2F", "-"), lease: 7000 })
    const { database, host, password, port, user } = settings.address
    assert.deepStrictEqual([user, host, port, database], ["me", "::1", 6543, "my-db"])
    assert.strictEqual(Redacted.isRedacted(password) ? Redacted.value(password) : password, "p@ss")
    assert.deepStrictEqual([settings.schema, settings.lease, settings.notify], ["jobs", 7000, false])
  })

  it("takes a function that returns the password", async () => {
    const { password } = decoded({ password: () => "token" }).address
    assert.strictEqual(typeof password === "function" ? await password() : password, "token")
  })

  it.each([
    [{ url: "postgres://host/db" }, undefined],
    [{ url: "postgres://host/db?sslmode=disable" }, undefined],
    [{ url: "postgres://host/db?sslmode=require" }, {}],
    [{ url: "postgres://host/db?sslmode=verify-full" }, {}],
    [{ url: "postgres://host/db?sslmode=require", tls: false }, undefined],
    [{ tls: true }, {}],
    [{ tls: { caFile: "ca.pem" } }, { caFile: "ca.pem" }]
  ] as const)("TLS of %o is %o", (options, expected) => assert.deepStrictEqual(decoded(options).address.tls, expected))

  it.each([
    [{ url: "mysql://host" }, "url"],
    [{ url: "postgres://host?sslmode=prefer" }, "url"],
    [{ url: "postgres://host?lesae=1" }, "url"],
    [{ url: "postgres://u:secret@host?lease=1" }, "lease"],
    [{ schema: "" }, "schema"],
    [{ password: 5 as never }, "password"],
    [{ tls: { caFiel: "x" } as never }, "tls.caFiel"]
  ] as const)("refuses %o, and shows no secret", (options, field) => {
    const error = failure(options)
    assert.strictEqual(error?.field, field)
    assert.notInclude(String(error?.message), "secret")
  })
})
