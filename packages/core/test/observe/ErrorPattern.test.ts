import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as ErrorPattern from "../../src/observe/ErrorPattern.ts"
import { messages } from "./errorMessages.ts"

/** Everything that the rules look at, so that any two of them meet. */
const fragments = fc.constantFrom(
  ..."code status Status statusCode HTTP HTTP/1.1 503 404 Error got from SQLSTATE exit a order a_b E11000 P2002".split(
    " "
  ),
  ..."ECONNREFUSED ERR_HTTP2_X S3Exception utf8 x1 1 12 5432 1.5 1e9 0xff deadbeef deadbeef01 -1 + - % _ é ²".split(
    " "
  ),
  ..."507f1f77bcf86cd799439011 aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa cus_NffrFeUfNV2Hib localhost db.internal".split(
    " "
  ),
  ..."db:5432 10.0.0.1 ::1 :: https :// https://x.y/z foo@bar.com @ arn:aws: arn aws /var/x / ./ C:\\ \\ x\\".split(
    " "
  ),
  ..."2026-01-01 T10:00:00Z 10:00:00 ms s MB ' \" ` “ ” ’ ( ) [ ] { } , : ; . ... = # <num> < >".split(" "),
  " Not Found",
  " Service",
  "Mon, ",
  "Nov 5",
  " at 10:00 PM",
  "1:15 am",
  "eyJhbGciOi.eyJzdWIi.a-b",
  "V1StGXR8_Z5jdHi6B-myT",
  "web-7d9f8c6b5-x2k4z",
  "00:1B:44:11:3A:B7",
  "gyB+3jRPnrkN98ZajxHXr3u7EFM67bNgSAxexeEHndCX/7GR",
  "PT1H30M",
  "0x80131904",
  "550 5.1.1",
  "535-5.7.8",
  "SMTP 550",
  "error: 23505",
  "ERROR 1062 (23000)",
  "[429]",
  "(502)",
  "-104",
  "Failed to fetch: 403",
  "step2",
  "23 Nov 2026",
  ", ",
  ": ",
  "> ",
  " ",
  "\n    at ",
  " is not valid JSON",
  "\u001b[31m",
  '"code":',
  '"error" :',
  ' at ["a"]',
  '["b"]'
)

const texts = fc.oneof(
  fc.array(fragments, { maxLength: 8 }).map((parts) => parts.join("")),
  fc.array(fc.oneof({ weight: 6, arbitrary: fragments }, fc.string({ unit: "binary" }))).map((parts) => parts.join(""))
)

describe("the pattern of a message", () => {
  it.each(messages)("%s", (message, pattern) => assert.strictEqual(ErrorPattern.of(message), pattern))

  it("is its own pattern, and no longer than the limit", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const pattern = ErrorPattern.of(text)
        assert.isAtMost(pattern.length, ErrorPattern.limit)
        assert.strictEqual(ErrorPattern.of(pattern), pattern)
      }),
      { numRuns: 1000 }
    )
  })

  it("is the same for any number, id, address, time and quoted text", () => {
    const variables = fc.record({
      count: fc.nat(),
      id: fc.uuid(),
      host: fc.ipV4(),
      port: fc.integer({ min: 1024, max: 65_535 }),
      at: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }),
      name: fc.string({ unit: fc.constantFrom("a", "Z", " ", "0", "9", "-", ".", "/", ":") })
    })
    const message = ({ at, count, host, id, name, port }: typeof variables extends fc.Arbitrary<infer A> ? A : never) =>
      `"${name}": job ${id} failed on ${host}:${port} since ${at.toISOString()}, ${count} times`
    fc.assert(
      fc.property(variables, (values) => {
        const expected = "<str>: job <id> failed on <addr> since <time>, <num> times"
        assert.strictEqual(ErrorPattern.of(message(values)), expected)
      })
    )
  })

  it("of a message that was cut is that of the message, as far as it goes", () => {
    const message = (id: string) => `${id}: ${"the shop does not answer and ".repeat(20)}`
    const cut = ["7", "12345678901234567890"].map((id) => ErrorPattern.of(message(id).slice(0, 256)))
    assert.strictEqual(cut[0], cut[1])
    assert.isTrue(cut[0]!.startsWith("<num>: the shop does not answer"))
  })
})

describe("causes", () => {
  const apart: ReadonlyArray<readonly [string, string]> = [
    ["Request failed with status code 503", "Request failed with status code 404"],
    ["503", "404"],
    ["503 Service Unavailable", "502 Bad Gateway"],
    ["POST https://a.example/x failed: 429 Too Many Requests", "POST https://a.example/x failed: 401 Unauthorized"],
    ["connect ECONNREFUSED 10.0.0.1:5432", "connect ETIMEDOUT 10.0.0.1:5432"],
    ["SQLSTATE[23505]: violation", "SQLSTATE[40001]: violation"],
    ["error code: 42P01", "error code: 40P01"],
    ["P2002", "P2025"],
    ["E11000 duplicate key error", "E11001 duplicate key error"],
    ["ORA-00942: failed", "ORA-01017: failed"],
    ["S3ServiceException: failed", "DynamoDBServiceException: failed"],
    ["Process exited with code 1", "Process exited with code 137"],
    ['violates unique constraint "users_email_key"', 'violates unique constraint "orders_number_key"'],
    ["card number is invalid", "connect ECONNREFUSED 10.0.0.1:443"],
    ["Failed to fetch: 403", "Failed to fetch: 404"],
    ["[429] Too many", "[500] Too many"],
    ["(502)", "(504)"],
    ["Bad response (502)", "Bad response (504)"],
    ['API error: 429 {"error":"rate"}', 'API error: 500 {"error":"rate"}'],
    ["SMTP 550 mailbox unavailable", "SMTP 421 mailbox unavailable"],
    ["550 5.1.1 User unknown", "550 5.7.1 User unknown"],
    ["Message failed: 554 5.7.1 spam", "Message failed: 550 5.1.1 spam"],
    ["Invalid login: 535-5.7.8 Denied", "Invalid login: 534-5.7.9 Denied"],
    ["ERROR 1062 (23000): Duplicate entry", "ERROR 1213 (40001): Duplicate entry"],
    ["error: 23505", "error: 23503"],
    ["error: 42P01", "error: 40P01"],
    ["HRESULT: 0x80131904", "HRESULT: 0x80004005"],
    ["0x80070005 access denied", "0x80070002 access denied"],
    ["-104", "-111"],
    ["Twilio error 21211", "Twilio error 30003"],
    ["step2 failed", "step3 failed"]
  ]
  it.each(apart)("%s, and %s, are two", (one, other) =>
    assert.notStrictEqual(ErrorPattern.of(one), ErrorPattern.of(other))
  )

  const together: ReadonlyArray<readonly [string, string]> = [
    ["connect ECONNREFUSED 10.0.0.1:5432", "connect ECONNREFUSED ::1:6379"],
    ["order 503 not found", "order 404 not found"],
    ["order-7 is gone", "order-71 is gone"],
    ["timeout of 5000ms exceeded", "timeout of 30 s exceeded"],
    ["no user 507f1f77bcf86cd799439011", "no user 65a1f2c3d4e5f60718293a4b"],
    ["ids 1, 2 and 3 are missing", "ids 1,2,3,4 and 9 are missing"],
    [`Unexpected token 'a', "abc" is not valid JSON`, `Unexpected token 'x', ..."{"x": x}"... is not valid JSON`],
    ["no such file '/tmp/a b.txt'", 'no such file "x"'],
    ["got 503 rows\n    at main (a.js:1:2)", "got 7 rows\n    at other (b.js:3:4)"],
    ["GET https://a.example/users/1?x=2 failed", "GET http://10.0.0.1:80/ failed"],
    [
      "S3 Extended Request ID: gyB+3jRPnrkN98ZajxHXr3u7EFM67bNgSAxexeEHndCX/7GRnfTXxReKUQF28IfP)",
      "S3 Extended Request ID: Uuag1LuByRx9e6j5Onimru9pO4ZVKnJ2Qz7/C1NPcfTWAtRPfTaOFg==)"
    ],
    ["jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIyIn0.def"],
    ["nanoid V1StGXR8_Z5jdHi6B-myT", "nanoid Uakgb_J5m9g-0JDMbcJqL"],
    ["pod web-7d9f8c6b5-x2k4z evicted", "pod web-5c689d88bb-qhlvk evicted"],
    ["mac 00:1B:44:11:3A:B7", "mac 10:20:30:40:50:60"],
    ["lease of PT1H30M over", "lease of PT5S over"],
    ["lease of P1DT0.5S over", "lease of 2h over"],
    ["took 1.2e3 ms", "took 900 ms"],
    ["on Nov 5 at 10:00 PM", "on December 12th, 2026 at 1:15 AM"],
    ["since 23 Nov 2026 10:00:00", "since 1 May 2026 9:00"],
    ["at 3:04:05 PM", "at 11:15 am"],
    ["at 11/25/2026, 3:04:05 PM", "at 1/5/2026, 11:04:05 AM"],
    ["-5 is negative", "-12 is negative"],
    ["Order (404) is gone", "Order (71) is gone"],
    ["items [404] and on", "items [71] and on"],
    ["lock 0x7ffee3b8 held", "lock 0x7ffee111 held"]
  ]
  it.each(together)("%s, and %s, are one", (one, other) =>
    assert.strictEqual(ErrorPattern.of(one), ErrorPattern.of(other))
  )
})

describe("a hostile message of 1 MiB", () => {
  const parts = [
    ...`a 1 'a " \` a. 1. a- a@ / a/ :: 1: a:1 \\ \\" < {"a": http:// _ A_ A1 0x . ( [ ... “ 1e 1, +1 code= aS`.split(
      " "
    ),
    " ",
    "\n",
    "\n at",
    "\u001b[",
    "\ud800",
    "Mon, 1 ",
    'a" is not valid JSON ',
    "got ",
    "1 ",
    "eyJa",
    "aB1",
    "aB1-",
    "00:",
    "P1",
    "PT1",
    "Nov 1 ",
    "Failed to ",
    "failed to a: ",
    "error ",
    "0x8",
    "1:1",
    "550 5."
  ]
  it("of one long word is its beginning", () => {
    assert.strictEqual(ErrorPattern.of("接続".repeat(130)), "接続".repeat(100))
    assert.notStrictEqual(ErrorPattern.of("x".repeat(260)), ErrorPattern.of("接続".repeat(130)))
  })

  it.each(parts)("of %j is read as far as the limit", (part) => {
    const text = part.repeat(Math.ceil(2 ** 20 / part.length))
    // Rules that went back over it again and again would not end in time.
    assert.strictEqual(ErrorPattern.of(text), ErrorPattern.of(text.slice(0, 2048)))
  })
})
