import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { html } from "../src/internal/html.ts"

describe("the template", () => {
  it("leaves no text that could end an attribute or begin a tag", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const [, attribute, content] = /^<b title="(.*)">(.*)<\/b>$/s.exec(html`<b title="${text}">${text}</b>`.text)!
        assert.notMatch(attribute!, /["<>]/)
        assert.notMatch(content!, /[<>]/)
        assert.notMatch(content!.replaceAll(/&(?:amp|lt|gt|quot|#39|#96);/g, ""), /&/)
      })
    )
  })

  it("puts HTML into HTML once, and each of a list", () => {
    const list = ["<", html`<i>${"&"}</i>`]
    assert.strictEqual(html`<b>${list}${undefined}${false}${0}</b>`.text, "<b>&lt;<i>&amp;</i>0</b>")
  })

  it("takes nothing that only looks like HTML for HTML", () => {
    const forged: never = JSON.parse(`{"text":"<script>"}`) as never // What a body may hold.
    assert.notInclude(html`${forged}`.text, "<script>")
  })

  it("shows characters that would hide or turn others", () => {
    assert.strictEqual(html`${"a\u202eb\u0000c\u001b[2J\ud800"}`.text, "a\ufffdb\ufffdc\ufffd[2J\ufffd")
  })
})
