/** Handlers that take long: timeouts and leases. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("timeouts and leases")

export const cases: ReadonlyArray<Case.Case> = [
  test("a handler that takes too long is interrupted, and its attempt counts as failed", function* (lab) {
    let interrupted = 0
    yield* lab.send("a")
    yield* lab.start({ handlerTimeout: lab.unit, retry: RetryPolicy.make({ maxRetries: 1 }) }, () =>
      Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal(
      "attempts",
      lab.runs.map(({ attempts }) => attempts),
      [1, 2]
    )
    Check.equal("interrupted", interrupted, 2)
    Check.equal("error", letter!.metadata.deadLetter?.error.name, "HandlerTimeout")
    lab.checkDelay("the interruption", lab.unit, lab.runs[0]!.at, lab.entriesOf("Settling")[0]!.at)
  }),
  test("a promise's handler that takes too long has its signal aborted", function* (lab) {
    const aborted: Array<boolean> = []
    yield* lab.send("a")
    yield* lab.start({ handlerTimeout: lab.unit, retry: RetryPolicy.make({ maxRetries: 0 }) }, (_, { signal }) => {
      return new Promise(() => signal.addEventListener("abort", () => aborted.push(signal.aborted)))
    })
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("aborted", aborted, [true])
    Check.equal("error", letter!.metadata.deadLetter?.error.name, "HandlerTimeout")
  }),
  test("a redelivery does not start before the interrupted handler has cleaned up", function* (lab) {
    const order: Array<string> = []
    yield* lab.send("a")
    yield* lab.start({ handlerTimeout: lab.unit }, (message) => {
      order.push(`run ${message.attempts}`)
      if (message.attempts > 1) return Effect.void
      const cleanUp = Effect.andThen(
        Effect.sleep(lab.unit),
        Effect.sync(() => order.push("cleaned up"))
      )
      return Effect.onInterrupt(Effect.never, () => cleanUp)
    })
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("order", order, ["run 1", "cleaned up", "run 2"])
  }),
  test("a handler within its time is left alone", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ handlerTimeout: 100 * lab.unit }, () => Effect.sleep(3 * lab.unit))
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("runs", lab.runs.length, 1)
  }),
  test(
    "a handler may run longer than the lease: it is extended, and the message does not come twice",
    function* (lab) {
      const { duration } = lab.capabilities.lease!
      yield* lab.send("a", "b")
      yield* lab.start({ handlerTimeout: 100 * duration }, () => Effect.sleep(2.5 * duration))
      yield* lab.untilEvents("Succeeded", 2)
      yield* lab.quiet(duration)
      Check.equal("messages", [...new Set(lab.runs.map(({ id }) => id))].toSorted(), ["a", "b"])
      const runs = lab.runs.map(({ attempts, id }) => `${id} ${attempts}`)
      checkKept(lab, "runs", runs.toSorted(), ["a 1", "b 1"], lab.runs[0]!.at)
      // The core never reruns a delivery that it knows, which hides a lost lease.
      checkKept(lab, "deliveries", lab.entriesOf("Delivered").length, 2, lab.runs[0]!.at)
      yield* lab.untilEmpty
    },
    Needs.lease
  ),
  test(
    "without leases, a message stays with its handler",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({ handlerTimeout: "unlimited" }, () => Effect.sleep(2000))
      yield* lab.start({}, () => {})
      yield* lab.untilEvents("Succeeded", 1)
      Check.equal("runs", lab.runs.length, 1)
      yield* lab.untilEmpty
    },
    Needs.noLease
  ),
  test("a message that comes before its time waits, uncounted, and no handler runs", function* (lab) {
    // As after a broker that forgot its delays: the message is there too early by its own metadata.
    const due = lab.now() + 3 * lab.unit
    yield* lab.publish("a", { notBefore: due })
    yield* lab.start()
    const [run] = yield* lab.untilRuns(1)
    Check.isTrue("not before its time", run!.at >= due, run!.at - due)
    Check.equal("attempts", run!.attempts, 1)
    yield* lab.untilEvents("Succeeded", 1)
  })
]
