import { assert, describe, it } from "vitest"
import { mask } from "../src/Secrets.ts"

describe("a password in a URL", () => {
  it.each([
    ["amqp://me:hunter2@host:5672/%2F"],
    ["--url=amqp://me:hunter2@host"],
    ["acme+tls://:hunter2@host?x=1"],
    ["amqp://me:hunter%32@host"]
  ])("of %s is not repeated", (arg) => {
    const said = "cannot reach amqp://me:hunter2@host with hunter2, or hunter%32"
    assert.notMatch(mask(said, ["status", "--url", arg]).replaceAll("hunter%32", ""), /hunter2/)
  })

  it("that is written in another way is found as well", () =>
    assert.strictEqual(mask("p%40ss, p@ss", ["sqs://k:p%40ss@h"]), "***, ***"))

  it("is found in JSON as well", () => {
    const said = JSON.stringify({ error: 'cannot log in with p"s\\s' })
    assert.strictEqual(mask(said, ["amqp://me:p%22s%5Cs@h"]), '{"error":"cannot log in with ***"}')
  })

  it.each([["memory:"], ["nsq://host"], ["not a url"], ["amqp://me:ab@host"], ["amqp://me:%zz@host"]])(
    "of %s leaves words alone",
    (arg) => assert.strictEqual(mask("about a host", ["--url", arg]), "about a host")
  )
})
