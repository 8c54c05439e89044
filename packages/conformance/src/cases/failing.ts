/** A handler that reports one message as failed. */
import { Backoff, BatchPolicy, ConsumerBackoff, Failure, type Handler, RetryPolicy } from "@requeue/core"
import type { Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("message.fail")

const three = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 })

/** Sends a batch of three, in which the message `a` fails so at its first attempt. */
const failsA = (lab: Lab, fail: (a: Handler.Received<unknown>) => void, retry = RetryPolicy.make()) =>
  Effect.gen(function* () {
    yield* lab.send("a", "b", "c")
    yield* lab.startBatch({ batch: three, retry }, ({ messages }) => {
      const a = messages.find(({ attempts, id }) => id === "a" && attempts === 1)
      if (a !== undefined) fail(a)
    })
    yield* lab.untilRuns(3)
  })

const failures = (lab: Lab) => lab.eventsOf("AttemptFailed").map(({ error, id }) => [id, error.name, error.message])

/** Starts a consumer whose only message fails, and returns its pauses after a while. */
const pauses = (lab: Lab, fail: (message: Handler.Received<unknown>) => void) =>
  Effect.gen(function* () {
    yield* lab.send("a")
    const retry = RetryPolicy.make({ backoff: Backoff.constant(50 * lab.unit) })
    const consumerBackoff = ConsumerBackoff.nsq({ multiplier: lab.unit / 2 })
    yield* lab.start({ retry, consumerBackoff }, fail)
    yield* lab.untilEvents("AttemptFailed", 1)
    yield* lab.until("its settlement", () => lab.entriesOf("Settled").length > 0)
    return lab.eventsOf("BackoffEntered").flatMap(({ because }) => (because === "handler" ? [because] : []))
  })

const errorOf = ({ deadLetter }: Metadata.Metadata) => [deadLetter?.error.name, deadLetter?.error.message]

export const cases: ReadonlyArray<Case.Case> = [
  test("fails with a permanent error: that message is dead-lettered at once with it, and no other", function* (lab) {
    yield* failsA(lab, (a) => a.fail(new Failure.PermanentError({ message: "no account" })))
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("the dead letter", [letter!.metadata.id, letter!.metadata.deadLetter?.reason], ["a", "permanent"])
    Check.equal("its error", errorOf(letter!.metadata), ["PermanentError", "no account"])
    yield* lab.untilEvents("Succeeded", 2)
    Check.equal("reported", failures(lab), [["a", "PermanentError", "no account"]])
    yield* lab.untilEmpty
  }),
  test("fails with a permanent error and a delay, also before retryAll: the error decides", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.startBatch({ batch: three }, (batch) => {
      if (batch.messages[0]!.attempts > 1) return
      batch.messages.find(({ id }) => id === "a")?.fail(new Failure.PermanentError({ message: "no" }), { delay: 0 })
      batch.messages.find(({ id }) => id === "b")?.fail(new Failure.PermanentError({ message: "no" }))
      batch.retryAll({ delay: 0 })
    })
    const letters = yield* lab.untilDeadLetters(2)
    Check.equal(
      "dead letters",
      letters.map(({ metadata: { deadLetter, id } }) => `${id} ${deadLetter?.reason}`).toSorted(),
      ["a permanent", "b permanent"]
    )
  }),
  test("fails with a retryAfter: it sets the delay, unless the call has one", function* (lab) {
    const later = (units: number) =>
      new Failure.RetryLaterError({ message: "busy", retryAfter: (units * lab.unit) / 1000 })
    yield* lab.send("a", "b")
    yield* lab.start({ batch: BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 }) }, (message) => {
      if (message.attempts > 1) return
      if (message.id === "a") message.fail(later(2))
      else message.fail(later(50), { delay: 3 * lab.unit })
    })
    yield* lab.untilRuns(4)
    // After a lease has ended, deliveries cannot be attributed to retries.
    if (!checkKept(lab, "deliveries", lab.arrivals().length, 4, lab.runs[0]!.at)) return
    for (const [id, units] of [
      ["a", 2],
      ["b", 3]
    ] as const) {
      const asked = lab.entriesOf("Settling").find(({ delivery }) => delivery.metadata.id === id)!
      const again = lab.arrivals().find(({ delivery: { attempts, metadata } }) => metadata.id === id && attempts === 2)!
      lab.checkDelay(`the retry of ${id}`, units * lab.unit, asked.at, again.at)
    }
  }),
  test("fails on the last attempt: the dead letter has the error, and the handler's own end adds no other", function* (lab) {
    yield* failsA(lab, (a) => a.fail(new TypeError("odd")), RetryPolicy.make({ maxRetries: 0 }))
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("its error", errorOf(letter!.metadata), ["TypeError", "odd"])
    Check.equal("its reason", letter!.metadata.deadLetter?.reason, "retries-exhausted")
    Check.equal("reported", failures(lab), [["a", "TypeError", "odd"]])
  }),
  test("fails, and the handler throws: each message is reported with its own error", function* (lab) {
    yield* failsA(lab, (a) => {
      a.fail(new TypeError("odd"))
      throw new Error("all")
    })
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal(
      "told",
      failures(lab).toSorted(([a], [b]) => a!.localeCompare(b!)),
      [
        ["a", "TypeError", "odd"],
        ["b", "Error", "all"],
        ["c", "Error", "all"]
      ]
    )
  }),
  test("fails: it counts towards consumer backoff as a handler's failure does", function* (lab) {
    Check.equal("pauses", yield* pauses(lab, (message) => message.fail(new Error("down"))), ["handler"])
  }),
  test("fails with a permanent error: it pauses nothing", function* (lab) {
    const bad = new Failure.PermanentError({ message: "bad" })
    Check.equal("pauses", yield* pauses(lab, (message) => message.fail(bad)), [])
  }),
  test("fails, and opts out of consumer backoff: it pauses nothing", function* (lab) {
    Check.equal("pauses", yield* pauses(lab, (message) => message.fail(new Error("down"), { backoff: false })), [])
  })
]
