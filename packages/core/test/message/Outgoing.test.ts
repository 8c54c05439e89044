import { assert, describe, it } from "@effect/vitest"
import type { Delivery } from "../../src/message/Delivery.ts"
import type { Metadata } from "../../src/message/Metadata.ts"
import * as Outgoing from "../../src/message/Outgoing.ts"

const now = 1_000_000
const body = new Uint8Array([1, 2, 3])
const headers = { "content-type": "text/plain", trace: "t" }
const error = { name: "Boom", message: "no" }
const earlier = { attempt: 1, at: 900_000, error: "Boom: no", delay: 5 }
const dead = { queue: "work", attempts: 4, reason: "permanent" as const, at: 950_000, error }

/** The third attempt of a message that was copied once, after its first. */
const delivery: Delivery = {
  body,
  headers,
  attempts: 3,
  receipt: "receipt",
  metadata: {
    id: "m1",
    attempts: 1,
    notBefore: 900_005,
    firstPublished: 800_000,
    redrives: 2,
    history: [earlier],
    deadLetter: undefined
  }
}

/** A dead letter of `work`, wherever it is now. */
const letter: Delivery = { ...delivery, metadata: { ...delivery.metadata, deadLetter: dead } }

const retried = (delay: number) => ({ _tag: "Retry" as const, delay, error })
const asked = { _tag: "Retry" as const, delay: 0, error: undefined }
const given = { _tag: "DeadLetter" as const, reason: "permanent" as const, queue: "work.dlq", error }
const attempt = (error: string, delay: number) => [earlier, { attempt: 3, at: now, error, delay }]

/** What a copy changes; everything else stays as it was. */
const cases: ReadonlyArray<readonly [string, Outgoing.Outgoing, string, number, Partial<Metadata>]> = [
  [
    "retry: the attempt is used up and remembered",
    Outgoing.retry(delivery, retried(500), "work", now),
    "work",
    500,
    { attempts: 3, notBefore: now + 500, history: attempt("Boom: no", 500) }
  ],
  [
    "retry at once: no time to wait for",
    Outgoing.retry(delivery, retried(0), "work", now),
    "work",
    0,
    { attempts: 3, notBefore: 0, history: attempt("Boom: no", 0) }
  ],
  [
    "an asked retry has no error",
    Outgoing.retry(delivery, asked, "work", now),
    "work",
    0,
    { attempts: 3, notBefore: 0, history: attempt("retry()", 0) }
  ],
  [
    "hop: no handler saw it, no attempt is used up",
    Outgoing.hop(delivery, { delay: 700 }, "work", now),
    "work",
    700,
    { attempts: 2, notBefore: now + 700 }
  ],
  [
    "dead letter: starts anew, and tells what happened",
    Outgoing.deadLetter(delivery, given, "work", now),
    "work.dlq",
    0,
    {
      attempts: 0,
      notBefore: 0,
      deadLetter: { queue: "work", attempts: 3, reason: "permanent", at: now, error }
    }
  ],
  [
    "dead letter of an error of any size: it is cut, wherever the letter is kept",
    Outgoing.deadLetter(
      delivery,
      { ...given, error: { name: "N".repeat(5_000_000), message: "m".repeat(5_000_000) } },
      "work",
      now
    ),
    "work.dlq",
    0,
    {
      attempts: 0,
      notBefore: 0,
      deadLetter: {
        queue: "work",
        attempts: 3,
        reason: "permanent",
        at: now,
        error: { name: "N".repeat(64), message: "m".repeat(256) }
      }
    }
  ],
  [
    "redrive: attempts start again, the redrive is counted, the history stays",
    Outgoing.redrive(letter, "work"),
    "work",
    0,
    { attempts: 0, notBefore: 0, redrives: 3, deadLetter: undefined }
  ],
  [
    "redrive with a name",
    Outgoing.redrive(letter, "work", "op:run:1"),
    "work",
    0,
    { attempts: 0, notBefore: 0, redrives: 3, operation: "op:run:1", deadLetter: undefined }
  ],
  [
    "retry of a dead letter that somebody moved back: it is a redriven one",
    Outgoing.retry(letter, retried(500), "work", now),
    "work",
    500,
    { attempts: 3, notBefore: now + 500, history: attempt("Boom: no", 500), redrives: 3, deadLetter: undefined }
  ],
  [
    "hop of a dead letter that somebody moved back",
    Outgoing.hop(letter, { delay: 700 }, "work", now),
    "work",
    700,
    { attempts: 2, notBefore: now + 700, redrives: 3, deadLetter: undefined }
  ],
  [
    "dead letter of a dead letter that somebody moved back",
    Outgoing.deadLetter(letter, given, "work", now),
    "work.dlq",
    0,
    {
      attempts: 0,
      notBefore: 0,
      redrives: 3,
      deadLetter: { queue: "work", attempts: 3, reason: "permanent", at: now, error }
    }
  ],
  [
    "retry among the dead letters: it stays one",
    Outgoing.retry(letter, retried(500), "work.dlq", now),
    "work.dlq",
    500,
    { attempts: 3, notBefore: now + 500, history: attempt("Boom: no", 500), deadLetter: dead }
  ]
]

describe("copies", () => {
  it.each(cases)("%s", (_, copy, queue, delay, metadata) => {
    assert.deepStrictEqual(copy, { queue, body, headers, delay, metadata: { ...delivery.metadata, ...metadata } })
    // Bytes and headers are passed on, not rebuilt.
    assert.strictEqual(copy.body, body)
    assert.strictEqual(copy.headers, headers)
  })
})

describe("make", () => {
  const message = { queue: "work", id: "m1", body, headers }

  it("a message without a delay is due at any time", () => {
    const { delay, metadata } = Outgoing.make({ ...message, delay: 0 }, now)
    assert.deepStrictEqual([delay, metadata.notBefore, metadata.attempts, metadata.firstPublished], [0, 0, 0, now])
  })

  it("a delayed message knows when it is due", () => {
    const { delay, metadata } = Outgoing.make({ ...message, delay: 250 }, now)
    assert.deepStrictEqual([delay, metadata.notBefore], [250, now + 250])
  })
})

it("a copy keeps the name of its redrive, and loses it when somebody else moves its dead letter back", () => {
  const named = { ...letter, metadata: { ...letter.metadata, operation: "op:run:1", deadLetter: undefined } }
  const dead = Outgoing.deadLetter(named, given, "work", now)
  const operations = [
    Outgoing.retry(named, retried(500), "work", now),
    Outgoing.hop(named, { delay: 700 }, "work", now),
    dead,
    Outgoing.retry({ ...named, metadata: dead.metadata }, retried(500), "other", now),
    Outgoing.retry({ ...named, metadata: dead.metadata }, retried(500), "work", now)
  ].map(({ metadata }) => metadata.operation)
  assert.deepStrictEqual(operations, ["op:run:1", "op:run:1", "op:run:1", "op:run:1", undefined])
})

describe("the place of a message with a key", () => {
  const place = { key: "k", queue: "work", position: 7 }
  const keyed = { ...delivery, place }
  const letter = (parks?: true) =>
    Outgoing.deadLetter(
      keyed,
      { _tag: "DeadLetter", reason: "permanent", queue: "work.dlq", error, parks },
      "work",
      now
    )

  it("is kept by retries and parked letters, and left by other letters", () => {
    const retry = Outgoing.retry(keyed, { _tag: "Retry", delay: 0, error: undefined }, "work", now)
    assert.deepStrictEqual([retry.place, Outgoing.hop(keyed, { delay: 5 }, "work", now).place], [place, place])
    assert.deepStrictEqual(letter(true).place, place)
    assert.deepStrictEqual(letter().place, { key: "k", position: 7 })
  })

  it("is that of before for a redriven letter, in the lane of its queue", () => {
    const moved = Outgoing.move({ ...delivery, ...letter(true) }, "aside")
    assert.deepStrictEqual(moved.place, place)
    assert.deepStrictEqual(Outgoing.redrive({ ...delivery, ...letter() }, "other").place, { ...place, queue: "other" })
    assert.strictEqual(Outgoing.redrive(delivery, "work").place, undefined)
  })
})
