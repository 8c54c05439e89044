/** Settlements whose copy is stored, and whose original cannot be removed: they have succeeded, and only once. */
import { type Handler, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { type Loss, losses } from "../Harness.ts"
import { within, words } from "../internal/calls.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("failing calls")

/** Makes the call fail that settles the first run of a message, and waits until all is over. */
const settles = (
  lab: Lab,
  failure: Loss,
  retry: RetryPolicy.RetryPolicy,
  first: (message: Handler.Received<unknown>) => Effect.Effect<void, Error>
) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a")
    yield* lab.start({ retry }, (message) =>
      message.attempts === 1 ? Effect.andThen(Deferred.await(gate), first(message)) : undefined
    )
    yield* lab.untilRuns(1)
    const happened = yield* lab.failNext("settle", failure)
    yield* Deferred.succeed(gate, undefined)
    // A broker that delays the original itself gets its first removal after the last run.
    yield* lab.until("the failure", happened, within(lab))
    const isOver = () => lab.eventsOf("Succeeded").length + lab.eventsOf("DeadLettered").length > 0
    yield* lab.until("its end", isOver, within(lab))
    // A message that was not removed is redelivered, perhaps on a new connection.
    yield* lab.quiet()
    yield* lab.until("a connection", () => lab.broker.connection().state === "up", lab.recovery)
    yield* lab.quiet()
    yield* lab.untilEmpty
    yield* lab.quiet()
  })

export const cases: ReadonlyArray<Case.Case> = losses.flatMap((failure) => [
  test(
    `a delayed retry with a removal ${words[failure]} has its second run, and no third`,
    function* (lab) {
      yield* settles(lab, failure, RetryPolicy.make(), (message) =>
        Effect.sync(() => message.retry({ delay: 4 * lab.unit }))
      )
      const [first, second = 0, ...others] = lab.runs.map(({ attempts }) => attempts)
      Check.equal("the first run, and others", [first, others], [1, []])
      // A copy that was delivered on the connection that ends counts that delivery.
      Check.isTrue("the attempt of the second run", second >= 2, second)
    },
    Needs.failNext("settle", failure)
  ),
  test(
    `a dead letter with a removal ${words[failure]} is stored once, after one run`,
    function* (lab) {
      yield* settles(lab, failure, RetryPolicy.make({ maxRetries: 0 }), () => Effect.fail(new Error("no")))
      Check.equal("runs", lab.runs.length, 1)
      const letters = yield* lab.untilDeadLetters(1)
      Check.equal(
        "dead letters",
        letters.map(({ metadata }) => metadata.id),
        ["a"]
      )
    },
    Needs.failNext("settle", failure)
  )
])
