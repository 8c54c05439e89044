import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as TlsOptions from "../../src/adapter-kit/TlsOptions.ts"

const files: Readonly<Record<string, string>> = {
  "ca.pem": "Issued by the test\n-----BEGIN CERTIFICATE-----",
  "key.pem": "-----BEGIN PRIVATE KEY-----",
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
    [{ certFile: "ca.der" }, "TLS: certFile ca.der has no PEM text, which begins with -----BEGIN"]
  ])("refuses %o", (given, message) => assert.throws(() => TlsOptions.toNode(given, readFile), message))
})
