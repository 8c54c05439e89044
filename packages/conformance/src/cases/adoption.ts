/** Queues that existed before Requeue, with messages in them, and perhaps of another kind. */
import { Backoff, BrokerError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Lab from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("adopted queues")

const raw = (lab: Lab.Lab, text: string) =>
  lab.harness.publishRaw(lab.queue, new TextEncoder().encode(JSON.stringify(text)), {})

const retry = (lab: Lab.Lab, delay: number) =>
  RetryPolicy.make({ maxRetries: 4, backoff: Backoff.sequence([0, 0, 0, delay * lab.unit]) })

const bodies = ["one", "two", "three"]

/** Checks that every message of the queue has all its attempts, none of them early, and then becomes a dead letter. */
const exhausts = (lab: Lab.Lab) =>
  Effect.gen(function* () {
    yield* lab.untilDeadLetters(bodies.length)
    yield* lab.untilEvents("DeadLettered", bodies.length)
    for (const body of bodies) {
      const runs = lab.runs.filter((run) => run.body === body)
      Check.equal(
        `attempts of ${body}`,
        runs.map(({ attempts }) => attempts),
        [1, 2, 3, 4, 5]
      )
      lab.checkNotEarly("the last one", 2 * lab.unit, runs[3]!.at, runs[4]!.at)
    }
    yield* lab.untilEmpty
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("what was in a queue before its first consumer has all its attempts", function* (lab) {
    for (const body of bodies) yield* raw(lab, body)
    yield* lab.quiet(2 * lab.unit)
    yield* lab.start({ retry: retry(lab, 2) }, () => Effect.fail(new Error("no")))
    yield* exhausts(lab)
  }),
  test(
    "a queue of another kind is refused with a remedy, and keeps its messages; or they have all their attempts",
    function* (mine) {
      const lab = yield* Lab.at(yield* mine.harness.foreignQueue!("foreign"))
      for (const body of bodies) yield* raw(lab, body)
      const started = yield* Effect.result(lab.start({ retry: retry(lab, 2) }, () => Effect.fail(new Error("no"))))
      if (Result.isSuccess(started)) return yield* exhausts(lab)
      const error = started.failure
      Check.isTrue(
        "refused",
        error instanceof BrokerError.BrokerError && error.reason === "QueueMismatch",
        String(error)
      )
      Check.isTrue("with a remedy", error instanceof BrokerError.BrokerError && (error.remedy ?? "") !== "")
      yield* lab.untilPending({ ready: bodies.length, inFlight: 0 })
    },
    Needs.foreignQueue
  )
]
