/** Letters that are recognized when they are shown again. */
import { assert, it } from "@effect/vitest"
import type { Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Seen from "../../src/dead-letters/internal/seen.ts"

const letter = (body: string, redelivered: boolean | undefined = true) =>
  ({
    body: new TextEncoder().encode(body),
    headers: {},
    metadata: Metadata.make("same", 0),
    redelivered
  }) as Delivery.Delivery

it("an equal letter is new as long as the browser holds all that it has shown", () => {
  const seen = Seen.make(() => undefined)
  for (let n = 0; n < 3; n++) {
    assert.isUndefined(seen.see(letter("a")))
    seen.decide(letter("a"))
  }
})

it("a browser that opens its queue anew shows so many again, and others of the same id are new", () => {
  const seen = Seen.make(() => undefined)
  for (const body of ["a", "a", "b"]) seen.decide(letter(body))
  seen.remove(letter("b"))
  for (let opening = 0; opening < 3; opening++) {
    seen.reopen()
    assert.isUndefined(seen.see(letter("b")))
    assert.isUndefined(seen.see(letter("a", false)))
    const twice = [seen.see(letter("a")), seen.see(letter("a"))]
    assert.deepStrictEqual(twice, ["alike", "alike"])
    assert.isUndefined(seen.see(letter("a")))
  }
})

it("one letter that is lost is recognized once", () => {
  const seen = Seen.make(() => undefined)
  seen.decide(letter("a"))
  seen.lose(letter("a"))
  assert.deepStrictEqual([seen.see(letter("a")), seen.see(letter("a"))], ["alike", undefined])
})

it("a named letter is recognized by its name alone, and needs no second copy when it is shown after its removal", () => {
  const seen = Seen.make(({ body }) => String(body))
  seen.decide(letter("a"))
  assert.deepStrictEqual([seen.see(letter("a")), seen.see(letter("b"))], ["passed", undefined])
  seen.set(letter("a"), "published")
  seen.reopen()
  assert.strictEqual(seen.see(letter("a")), "published")
  seen.remove(letter("a"))
  assert.strictEqual(seen.see(letter("a")), "published")
  assert.isUndefined(seen.see(letter("b")))
})
