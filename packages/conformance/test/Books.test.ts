import { assert, describe, it } from "@effect/vitest"
import type { Event } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Books from "../src/Books.ts"
import * as VirtualTime from "../src/VirtualTime.ts"

const error = { name: "Error", message: "no" }
const subject = (id: string) => ({ queue: "q", id, attempts: 1 })

const acked = (id: string): Event.Event => ({ _tag: "Succeeded", ...subject(id) })
const dead = (id: string): Event.Event => ({
  _tag: "DeadLettered",
  ...subject(id),
  reason: "permanent",
  target: "q.dlq",
  error
})
const failed = (id: string, settlement: "DeadLetter" | "Ack"): Event.Event => ({
  _tag: "SettleFailed",
  ...subject(id),
  settlement,
  error: new Error("no answer")
})
const dropped = (id: string): Event.Event => ({ _tag: "Dropped", ...subject(id), reason: "dropped", error })

const told = (...events: ReadonlyArray<Event.Event>): Books.Books => {
  const books = Books.make(["a", "b", "c", "d"])
  for (const event of events) books.onEvent(event)
  return books
}

describe("balance", () => {
  it.each<[name: string, books: Books.Books, found: Books.Found, says: RegExp | undefined]>([
    [
      "an end of each kind",
      told(acked("a"), dead("b"), dropped("c")),
      { queued: ["d"], deadLetters: ["b"] },
      undefined
    ],
    [
      "ends that were told twice",
      told(acked("a"), acked("a"), dead("a")),
      { queued: "bcd", deadLetters: "a" },
      undefined
    ],
    ["a dead letter whose original came back", told(acked("a")), { queued: "bcd", deadLetters: "b" }, undefined],
    ["a message that is lost", told(acked("a"), dropped("c")), { queued: "d", deadLetters: "" }, /found nowhere.*"b"/],
    ["one that nobody published", told(acked("e")), { queued: "abcd", deadLetters: "" }, /never published.*"e"/],
    ["a dead letter that is not there", told(dead("a")), { queued: "abcd", deadLetters: "" }, /not found.*"a"/],
    [
      "dead letters without an answer, whose messages came again and ended otherwise",
      told(failed("a", "DeadLetter"), acked("a"), failed("b", "DeadLetter"), dropped("b")),
      { queued: "cd", deadLetters: "ab" },
      undefined
    ],
    [
      "one whose message did not come again",
      told(failed("a", "DeadLetter")),
      { queued: "bcd", deadLetters: "a" },
      /neither reported.*"a"/
    ],
    [
      "one of a message that was only to be acked",
      told(failed("a", "Ack"), acked("a")),
      { queued: "bcd", deadLetters: "a" },
      /neither reported.*"a"/
    ],
    ["one of which nobody told", told(acked("a")), { queued: "bcd", deadLetters: "a" }, /neither reported.*"a"/]
  ])("%s", (_, books, found, says) => {
    if (says === undefined) Books.balance(books, found)
    else assert.throws(() => Books.balance(books, found), says)
  })
})

describe("untilEnded", () => {
  it.live("ends with the last of the messages that it waits for", () =>
    VirtualTime.run(
      Effect.gen(function* () {
        const books = told(acked("a"))
        const some = yield* Effect.forkChild(Books.untilEnded(books, { of: ["a", "b"] }))
        yield* Effect.sleep(1000)
        assert.isUndefined(some.pollUnsafe())
        assert.strictEqual(Books.ended(books), 1)
        books.onEvent(dropped("b"))
        yield* Fiber.join(some)
        assert.deepStrictEqual(Books.missing(books), ["c", "d"])
      })
    )
  )

  it.live("names those that have no end when it takes too long", () =>
    VirtualTime.run(
      Effect.gen(function* () {
        const late = yield* Effect.flip(Books.untilEnded(told(acked("a"), dead("c")), { within: 500 }))
        assert.strictEqual(late.message, "the end of every message; 2 have not ended: b d: not within 500 ms")
      })
    )
  )
})
