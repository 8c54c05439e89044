/** Errors that decide about their message: permanent ones, drops, and retries with a time. */
import { Failure, RetryPolicy } from "@requeue/core"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("classification")

class NotFound extends Data.TaggedError("NotFound") {}

/** Lets the handler of one message fail with an error, and answers the message's dead letter. */
const deadLetterOf = (lab: Lab, error: unknown, retry = RetryPolicy.make()) =>
  Effect.gen(function* () {
    yield* lab.send("a")
    yield* lab.start({ retry }, () => Effect.fail(error))
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("runs", lab.runs.length, 1)
    return Check.present("metadata", letter!.metadata.deadLetter)
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("a permanent error is dead-lettered at once", function* (lab) {
    const { attempts, error, reason } = yield* deadLetterOf(lab, new Failure.PermanentError({ message: "gone" }))
    Check.equal("reason", reason, "permanent")
    Check.equal("attempts", attempts, 1)
    Check.equal("error", [error.name, error.message], ["PermanentError", "gone"])
  }),
  test("an error is permanent when one of its causes is", function* (lab) {
    const cause = new Error("middle", { cause: Object.assign(new Error("inner"), { permanent: true }) })
    const { error, reason } = yield* deadLetterOf(lab, new Error("outer", { cause }))
    Check.equal("reason", reason, "permanent")
    Check.equal("error", error.message, "outer, caused by middle, caused by inner")
  }),
  test("a policy may name permanent errors by their tag, anywhere in the chain", function* (lab) {
    const retry = RetryPolicy.make({ classify: { permanent: ["NotFound"] } })
    const { reason } = yield* deadLetterOf(lab, new Error("outer", { cause: new NotFound() }), retry)
    Check.equal("reason", reason, "permanent")
  }),
  test("a policy's own function decides first", function* (lab) {
    const retry = RetryPolicy.make({
      classify: { drop: ["NotFound"], with: ({ tags }) => (tags.includes("NotFound") ? "dead-letter" : undefined) }
    })
    const { reason } = yield* deadLetterOf(lab, new NotFound(), retry)
    Check.equal("reason", reason, "permanent")
  }),
  test("a permanent error is not run again in the same delivery", function* (lab) {
    const retry = RetryPolicy.make({ immediate: 3 })
    yield* deadLetterOf(lab, new Failure.PermanentError({ message: "gone" }), retry)
  }),
  test("a drop error removes the message and leaves no dead letter", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({}, () => Effect.fail(new Failure.DropError({ message: "worthless" })))
    const [dropped] = yield* lab.untilEvents("Dropped", 1)
    Check.equal("reason", dropped!.reason, "dropped")
    yield* lab.quiet()
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilEmpty
  }),
  test("a cause's retryAfter sets the delay", function* (lab) {
    yield* lab.send("a")
    const cause = new Failure.RetryLaterError({ message: "busy", retryAfter: (2 * lab.unit) / 1000 })
    yield* lab.start({}, (message) =>
      message.attempts === 1 ? Effect.fail(new Error("outer", { cause })) : Effect.void
    )
    yield* lab.untilRuns(2)
    lab.checkDelay("the retry", 2 * lab.unit, lab.entriesOf("Settling")[0]!.at, lab.runs[1]!.at)
  }),
  test("a permanent error does not undo an ack, or a retry that the handler asked for", function* (lab) {
    yield* lab.send("acked", "retried")
    yield* lab.start({}, (message) => {
      if (message.attempts > 1) return Effect.void
      if (message.id === "acked") message.ack()
      else message.retry({ delay: 0 })
      return Effect.fail(new Failure.PermanentError({ message: "gone" }))
    })
    yield* lab.untilEvents("Succeeded", 2)
    yield* lab.quiet()
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  })
]
