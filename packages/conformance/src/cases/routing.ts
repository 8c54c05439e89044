/** The dead-letter queues that a policy chooses, and what a dead letter does not carry. */
import { RetryPolicy } from "@requeue/core"
import { type Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"

const test = Case.inGroup("giving up")

const boom = () => Effect.fail(new Error("boom"))

export const cases: ReadonlyArray<Case.Case> = [
  test("an undecodable body is dead-lettered at once with its bytes; no handler sees it", function* (lab) {
    const body = Uint8Array.of(0xff, 0xfe, 0x00, 0x7b)
    yield* lab.harness.publishRaw(lab.queue, body, {})
    yield* lab.start()
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "undecodable")
    Check.equal("attempts", letter!.metadata.deadLetter?.attempts, 1)
    Check.sameBytes("body", letter!.body, body)
    Check.equal("runs", lab.runs.length, 0)
    yield* lab.untilEmpty
  }),
  test("reasons go to the queues that the policy names for them", function* (lab) {
    const [main, broken] = [yield* lab.harness.uniqueQueue("main"), yield* lab.harness.uniqueQueue("broken")]
    const retry = RetryPolicy.make({ maxRetries: 0, deadLetter: { queue: main, routes: { undecodable: broken } } })
    yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("{"), {})
    yield* lab.send("a")
    yield* lab.start({ retry }, boom)
    const [first] = yield* lab.untilDeadLetters(1, main)
    const [second] = yield* lab.untilDeadLetters(1, broken)
    Check.equal("reason", first!.metadata.deadLetter?.reason, "retries-exhausted")
    Check.equal("reason", second!.metadata.deadLetter?.reason, "undecodable")
    Check.equal("nothing elsewhere", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  }),
  test("a policy that discards drops, and an event reports it", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" }) }, boom)
    const [dropped] = yield* lab.untilEvents("Dropped", 1)
    Check.equal("reason", dropped!.reason, "retries-exhausted")
    yield* lab.untilEmpty
    yield* lab.quiet()
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
  }),
  test("what the policy takes out of errors is nowhere in the message", function* (lab) {
    const redact = ({ message, name }: Metadata.ErrorSummary) => ({
      name,
      message: message.replace(/key=\w+/, "key=…")
    })
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 2, deadLetter: { redact } }) }, () =>
      Effect.fail(new Error("refused key=secret"))
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("error", letter!.metadata.deadLetter?.error.message, "refused key=…")
    Check.isTrue("no secret anywhere", !JSON.stringify(letter!.metadata).includes("secret"), letter!.metadata)
  }),
  test("a dead letter keeps the stack trace of its last error, redacted", function* (lab) {
    const hidden = (text: string) => text.replaceAll("secret", "…")
    const redact = ({ message, name, stack = "" }: Metadata.ErrorSummary) => ({
      name,
      message: hidden(message),
      stack: hidden(stack)
    })
    const secretOrder = (attempt: number): never => {
      throw new Error("refused", { cause: new Error(`secret ${attempt}`) })
    }
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1, deadLetter: { redact } }) }, ({ attempts }) =>
      Effect.sync(() => secretOrder(attempts))
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    const stack = letter!.metadata.deadLetter?.error.stack ?? ""
    Check.isTrue("the frames of the error first", /^ {4}at .*…Order/.test(stack), stack)
    Check.isTrue("the cause of the last error", stack.includes("\ncaused by: Error: … 2\n    at "), stack)
    Check.isTrue("no secret anywhere", !JSON.stringify(letter!.metadata).includes("secret"), letter!.metadata)
  }),
  test("a queue that is its own dead-letter queue is refused", function* (lab) {
    const direct = RetryPolicy.make({ deadLetter: lab.queue })
    const routed = RetryPolicy.make({ deadLetter: { routes: { permanent: lab.queue } } })
    for (const retry of [direct, routed]) {
      const error = yield* Effect.flip(lab.start({ retry }))
      Check.equal("error", [error._tag, "field" in error && error.field], ["ConfigurationError", "retry.deadLetter"])
    }
  })
]
