/** The causes of dead letters, as an operator sees them. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"

const test = Case.inGroup("dead letters")

/** The errors of the messages with these ids. */
const errors: Readonly<Record<string, Error>> = {
  a: new Error("connect ECONNREFUSED 10.0.0.1:5432"),
  b: new TypeError("user 'bob' has no address"),
  c: new Error("connect ECONNREFUSED 10.0.0.2:6379"),
  d: new Error("order 4711: HTTP 503"),
  e: new Error("order 42: HTTP 404"),
  f: new Error("order 99: HTTP 503"),
  g: new Error("connect ECONNREFUSED [::1]:5432")
}

export const cases: ReadonlyArray<Case.Case> = [
  test("letters are grouped by what failed, whatever differs in the errors' messages, and stay where they are", function* (lab) {
    const ids = Object.keys(errors)
    yield* lab.send(...ids)
    const retry = RetryPolicy.make({ maxRetries: 0 })
    const consumer = yield* lab.start({ retry }, ({ id }) => Effect.fail(errors[id]!))
    yield* lab.untilDeadLetters(ids.length)
    yield* consumer.drain()
    yield* lab.harness.publishRaw(lab.dlq, new TextEncoder().encode("1"), {})
    const total = ids.length + 1
    yield* lab.untilPending({ ready: total }, lab.dlq)
    const groups = yield* (yield* lab.letters).group()
    const ours = [lab.queue, "retries-exhausted"]
    Check.equal(
      "groups",
      groups
        .map(({ count, error, pattern, queue, reason }) => [count, queue, reason, error, pattern].join())
        .toSorted(),
      [
        [3, ...ours, "Error", "connect ECONNREFUSED <addr>"].join(),
        [2, ...ours, "Error", "order <num>: HTTP 503"].join(),
        [1, ...ours, "Error", "order <num>: HTTP 404"].join(),
        [1, ...ours, "TypeError", "user <str> has no address"].join(),
        [1, undefined, undefined, undefined, undefined].join()
      ].toSorted()
    )
    Check.equal(
      "from the most frequent on",
      groups.map(({ count }) => count),
      [3, 2, 1, 1, 1]
    )
    for (const { id, message, newest, oldest, queue } of groups) {
      Check.equal(`the message of the example ${id}`, message, queue && errors[id]?.message)
      Check.isTrue("times in order", oldest! <= newest!)
    }
    Check.equal("looked at", [groups.browsed, groups.other], [total, 0])
    const { counts, exactCounts } = lab.capabilities
    Check.equal("a total is reported", groups.total !== undefined, counts.ready)
    if (exactCounts) Check.equal("of", groups.total, total)
    yield* lab.untilPending({ ready: total, inFlight: 0 }, lab.dlq)
  })
]
