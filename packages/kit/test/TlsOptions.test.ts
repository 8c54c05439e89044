import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { generateKeyPairSync } from "node:crypto"
import { createSecureContext } from "node:tls"
import { inspect } from "node:util"
import * as TlsOptions from "../src/TlsOptions.ts"

const files: Readonly<Record<string, string>> = {
  "ca.pem": "Issued by the test\n-----BEGIN CERTIFICATE-----\n",
  "key.pem": "-----BEGIN PRIVATE KEY-----\n",
  "flat.pem": "-----BEGIN PRIVATE KEY----- hunter2 -----END PRIVATE KEY-----",
  "ca.der": "\u0030\u0082"
}

const readFile = (path: string): Buffer => {
  const content = files[path]
  if (content === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`)
  return Buffer.from(content)
}

describe("toNode", () => {
  it("reads files, and has no other options than node:tls", () => {
    const given = { caFile: "ca.pem", cert: "-----BEGIN C", keyFile: "key.pem", passphrase: Redacted.make("p") }
    const { ca, cert, key, passphrase, ...others } = TlsOptions.toNode(given, readFile)
    assert.deepStrictEqual([String(ca), cert, String(key)], [files["ca.pem"], "-----BEGIN C", files["key.pem"]])
    assert.deepStrictEqual([passphrase, others], ["p", {}])
  })

  it.each([
    [{ caFile: "nowhere.pem" }, "TLS: caFile cannot be read: ENOENT: no such file or directory, open 'nowhere.pem'"],
    [{ certFile: "ca.der" }, "TLS: certFile ca.der has no PEM text, which begins with -----BEGIN"],
    [{ keyFile: "flat.pem" }, "TLS: keyFile flat.pem has PEM text, but its line breaks are missing"],
    [{ keyFile: `${"hunter2".repeat(40)}.pem` }, "open 'a path of 284 characters'"],
    [{ keyFile: "-----BEGIN PRIVATE KEY-----\nhunter2" }, "TLS: keyFile must be a path, got PEM text"]
  ])("refuses %o", (given, message) => {
    const error = thrown(() => TlsOptions.toNode(given, readFile))
    assert.include(error.message, message)
    assert.notInclude(inspect(error), "hunter2")
  })
})

/** What it throws. */
const thrown = (run: () => unknown): Error => {
  try {
    run()
  } catch (error) {
    if (error instanceof Error) return error
  }
  return assert.fail("nothing was thrown")
}

const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
const key = String(pair.privateKey.export({ type: "pkcs8", format: "pem" }))

describe("decode", () => {
  it.each<[name: string, tls: object, words: string]>([
    [
      "a key as a path",
      { keyFile: key },
      "tls.keyFile (broker acme): must be a path, got PEM text. Set key to the PEM text"
    ],
    [
      "a key as a path, in one line",
      { keyFile: key.replaceAll("\n", "\\n") },
      "tls.keyFile (broker acme): must be a path, got PEM text"
    ],
    [
      "the lines of a key as a path",
      { keyFile: "MIGHAgEA\nhunter2" },
      "tls.keyFile (broker acme): must be a path, got text with line breaks"
    ],
    ["base64 as a path", { keyFile: Buffer.from(key).toString("base64") }, "must be a path, got PEM text in base64"],
    [
      "an authority as a path",
      { caFile: key },
      "tls.caFile (broker acme): must be a path, got PEM text. Set ca to the PEM text"
    ],
    [
      "a certificate as a path",
      { certFile: key },
      "tls.certFile (broker acme): must be a path, got PEM text. Set cert to the PEM text"
    ],
    [
      "a key without line breaks",
      { key: key.replaceAll("\n", " ") },
      "tls.key (broker acme): its line breaks are missing. Set the option to PEM"
    ],
    [
      "a key of a .env file",
      { key: key.replaceAll("\n", "\\n") },
      "tls.key (broker acme): its line breaks are missing"
    ],
    [
      "bytes of a key of a .env file",
      { key: Buffer.from(key.replaceAll("\n", "\\n")) },
      "tls.key (broker acme): its line breaks are missing"
    ],
    [
      "the first line of a key",
      { key: "-----BEGIN PRIVATE KEY-----" },
      "tls.key (broker acme): its line breaks are missing"
    ],
    ["two that were joined", { ca: [key.trim() + key] }, "tls.ca (broker acme): its line breaks are missing"],
    ["an indented key", { key: key.replaceAll(/^/gm, "  ") }, "tls.key (broker acme): its lines begin with spaces"]
  ])("refuses %s, and does not show it", (_, tls, words) => {
    const decoded = TlsOptions.decode("acme", "tls", { cert: key, key, ...tls })
    if (Result.isSuccess(decoded)) assert.fail("decoded")
    assert.include(decoded.failure.message, words)
    const shown = inspect(decoded.failure, { depth: 9 }) + JSON.stringify(decoded.failure)
    for (const secret of [key.split("\n")[1]!, "hunter2", "-----BEGIN"]) assert.notInclude(shown, secret)
  })

  it.each([key, key.trim(), key.replaceAll("\n", "\r\n"), `Bag Attributes\n${key}\n${key}`])(
    "takes what OpenSSL takes: %#",
    (given) => {
      createSecureContext({ key: given })
      assert.isTrue(Result.isSuccess(TlsOptions.decode("acme", "tls", { cert: given, key: given, ca: [given] })))
    }
  )
})

describe("remedy", () => {
  const encryptedKey = () =>
    String(pair.privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "right" }))
  const encrypted = encryptedKey()
  it.each<[name: string, make: () => unknown, remedy: RegExp]>([
    ["a wrong passphrase", () => createSecureContext({ key: encrypted, passphrase: "wrong" }), /tls\.passphrase/],
    ["no passphrase", () => createSecureContext({ key: encrypted }), /tls\.passphrase/],
    ["half a key", () => createSecureContext({ key: key.slice(0, 80) }), /tls\.keyFile/],
    ["a key as a certificate", () => createSecureContext({ cert: key }), /tls\.certFile/],
    ["no PKCS12", () => createSecureContext({ pfx: Buffer.from("abc") }), /tls\.pfx/],
    ["a missing file", () => TlsOptions.toNode({ keyFile: "nowhere.pem" }, readFile), /tls\.keyFile to the path/],
    ["a file of another kind", () => TlsOptions.toNode({ certFile: "ca.der" }, readFile), /tls\.certFile to the path/],
    ["a flat file", () => TlsOptions.toNode({ keyFile: "flat.pem" }, readFile), /tls\.keyFile to the path/]
  ])("names the option of %s", (_, make, remedy) =>
    assert.match(TlsOptions.remedy(thrown(make).message, "tls") ?? "", remedy)
  )

  it("names the passphrase for every salt: some wrong ones decrypt the key to bytes that are no key", () => {
    for (let run = 0; run < 500; run++) {
      const key = encryptedKey()
      const error = thrown(() => createSecureContext({ key, passphrase: "wrong" }))
      assert.match(TlsOptions.remedy(error.message, "tls") ?? error.message, /tls\.passphrase/)
    }
  })

  it("is none for an error of the server's certificate", () =>
    assert.isUndefined(TlsOptions.remedy("DEPTH_ZERO_SELF_SIGNED_CERT self-signed certificate", "tls")))
})

it.each([
  ["DEPTH_ZERO_SELF_SIGNED_CERT self-signed certificate", true],
  ["unable to verify the first certificate", true],
  ["Hostname/IP does not match certificate's altnames", true],
  ["write EPROTO 00:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca", true],
  ["write EPROTO 00:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number", true],
  ["error:05800074:x509 certificate routines::key values mismatch", true],
  ["TLS: caFile cannot be read: ENOENT", true],
  ["Client network socket disconnected before secure TLS connection was established", false],
  ["connect ECONNREFUSED 127.0.0.1:5671", false]
])("is a mistake of the configuration: %s, %s", (text, is) => assert.strictEqual(TlsOptions.isMistake(text), is))
