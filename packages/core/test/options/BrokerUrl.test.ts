import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as BrokerUrl from "../../src/options/BrokerUrl.ts"

const parse = (url: string | URL) => BrokerUrl.parse(url, ["limit", "secret"])

describe("a URL", () => {
  it.each([
    "acme://me:p%40%2F%23%25%2B+x@host:1/a%2Fb?limit=5%2B",
    "acme://me:p@%2F%23%25%2B+x@host:1/a%2Fb?limit=5%2B"
  ])("%s has its parts decoded, and a plus is a plus", (url) => {
    for (const given of [url, new URL(url), Redacted.make(url)]) {
      const { parameters, password, path, username } = Result.getOrThrow(BrokerUrl.parse(given))
      assert.deepStrictEqual([username, password, path, parameters["limit"]], ["me", "p@/#%++x", "a/b", "5+"])
    }
  })

  it("a path without a first slash keeps its dots", () => {
    const { url } = Result.getOrThrow(parse("acme:../../queue.db"))
    assert.strictEqual(url.pathname, "../../queue.db")
  })

  it.each(["/", "?", "#"])("a password with %s, which ends the host, is told to be percent-encoded", (character) => {
    const refused = parse(`acme://me:hun${character}ter2@host/`)
    const { detail, remedy = "" } = Result.isFailure(refused) ? refused.failure : assert.fail("it was accepted")
    assert.strictEqual(detail, "the value is not a valid URL")
    assert.include(remedy, "with encodeURIComponent: @ is %40, / is %2F, ? is %3F, # is %23")
    assert.notMatch(remedy, /hun|ter2/)
  })

  it.each([
    ["hunter2", "the value is not a valid URL"],
    ["acme://me:1#hunter2@host", "the URL has a #"],
    ["acme://me:1/hunter2@host", "the URL has an @ after the host"],
    ["acme://me:1?hunter2@host", "the URL has an @ after the host"],
    ["acme://me:%zzhunter2@host", "the URL has a % that encodes no character"],
    ["acme://me:hun\nter2@host", "the URL has a line break"],
    ["acme://me:hunter2\ud800@host", "a character that no URL can have"],
    ["acme://me:1@host/../hunter2", "a path of dots"],
    ["acme://host?limit=hunter2+1", "the URL has a + in its query"],
    ["acme://host?hunter2=1", "the URL has a parameter that is not an option"],
    ["acme://host?secret=hunter2&secret=1", "the parameter secret is given twice"]
  ])("%j is refused, and not shown", (url, words) => {
    const refused = parse(url)
    const { detail, remedy = "" } = Result.isFailure(refused) ? refused.failure : assert.fail("it was accepted")
    assert.include(detail, words)
    assert.notInclude(`${detail} ${remedy}`, "hunter")
  })
})
