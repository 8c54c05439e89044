/** Two processes on one queue: what one of them does, the other sees. */
import { Backoff, type Delivery, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("processes")

const ids = Workload.ids(20)

const idsOf = (deliveries: ReadonlyArray<Delivery.Delivery>) => deliveries.map(({ metadata }) => metadata.id).toSorted()

/** Opens a subscription of one process, with its own scope. */
const open = (lab: Lab, credit: number) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const port = yield* Effect.provideService(
      Port.open(lab.broker, { queue: lab.queue, credit, keep: true, within: lab.recovery }),
      Scope.Scope,
      scope
    )
    return { ...port, close: Scope.close(scope, Exit.void) }
  })

/** Each message goes to one of two subscriptions; when one of them ends, its messages go to the other soon. */
const shares = (lab: Lab) =>
  Effect.gen(function* () {
    const other = yield* lab.another
    const half = ids.length / 2
    const [one, two] = [yield* open(lab, half), yield* open(other, half)]
    const both = () => one.waiting() + two.waiting()
    const published = lab.now()
    for (const id of ids) yield* lab.publish(id)
    yield* lab.until("all messages", () => both() >= ids.length, lab.recovery)
    yield* lab.quiet()
    if (!checkKept(lab, "deliveries", both(), ids.length, published)) return
    const [kept, held] = [yield* one.take(one.waiting()), yield* two.take(two.waiting())]
    Check.equal("messages", idsOf([...kept, ...held]), ids.toSorted())
    const begun = lab.now()
    yield* two.close
    one.credit(ids.length)
    const back = yield* one.take(held.length)
    if (!checkKept(lab, "what the other had held", idsOf(back), idsOf(held), begun)) return
    const { duration } = lab.capabilities.lease ?? { duration: Number.POSITIVE_INFINITY }
    // About five exchanges, each of which may be late by as much as a control.
    const bound = Math.max(lab.harness.lateness, duration / 5)
    lab.checkTimely("it came before a lease could end", lab.now() - begun < duration / 2, true, begun, bound)
    for (const delivery of [...kept, ...back]) yield* one.settle(delivery, Settlement.Ack)
    yield* lab.untilEmpty
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("each message goes to one process; when that ends, what it held goes to the other", shares, Needs.another),
  test(
    "where the broker lives in one process, each message goes to one subscription; when that ends, it goes to another",
    shares,
    Needs.oneProcess
  ),
  test(
    "a message that one process delays comes to another at its time, and not before",
    function* (lab) {
      const one = yield* open(lab, 1)
      // Clocks that count from the start of their process would differ.
      yield* Effect.sleep(2 * lab.unit)
      const other = yield* lab.another
      const delay = 4 * lab.unit
      const producer = yield* other.producer()
      // The first one connects, and declares what delays need: on a slow machine a lost delay would be over by then.
      yield* producer.send("first", { id: "first", delay })
      yield* one.settle(yield* one.next, Settlement.Ack)
      const from = lab.now()
      yield* producer.send("a", { id: "a", delay })
      const accepted = lab.now()
      yield* one.next
      lab.checkDelay("the message", delay, from, lab.entriesOf("Delivered").at(-1)!.at, { accepted })
    },
    Needs.all(Needs.another, Needs.nativeDelays)
  ),
  test(
    "a retry that one process delays comes to another at its time, with its attempts and its history",
    function* (lab) {
      const delay = 4 * lab.unit
      const retry = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant(delay) })
      yield* lab.send("a")
      const consumer = yield* lab.start({ retry }, () => Effect.fail(new TypeError("no")))
      yield* lab.untilEvents("RetryScheduled", 1)
      yield* consumer.drain()
      yield* lab.until("the retry", () => lab.entriesOf("Settled").length > 0)
      const other = yield* lab.another
      yield* other.start({ retry })
      // No subscription takes it before.
      const ready = lab.now() - delay
      const [run] = yield* other.untilRuns(1, lab.recovery)
      Check.equal("attempts", run!.attempts, 2)
      lab.checkDelay("the retry", delay, lab.runs[0]!.at, run!.at, {
        accepted: Math.max(ready, lab.entriesOf("Settled")[0]!.at)
      })
      const [delivered] = other.arrivals()
      const errors = delivered!.delivery.metadata.history.map(({ error }) => error)
      if (lab.capabilities.historyOnRetry) Check.equal("history", errors, ["TypeError: no"])
      yield* lab.untilEmpty
    },
    Needs.another
  ),
  test(
    "dead letters of one process are seen, and redriven, by another",
    function* (lab) {
      const other = yield* lab.another
      yield* (yield* other.producer()).send("a", { id: "a" })
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, () =>
        lab.runs.length === 1 ? Effect.fail(new Error("no")) : Effect.void
      )
      yield* lab.untilDeadLetters(1)
      Check.equal("redriven", (yield* (yield* other.letters).redrive()).redriven, 1)
      yield* lab.untilEvents("Succeeded", 1, lab.recovery)
      Check.equal(
        "runs",
        lab.runs.map(({ id, attempts }) => `${id} ${attempts}`),
        ["a 1", "a 1"]
      )
      Check.equal("dead letters in the end", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
      yield* lab.untilEmpty
    },
    Needs.another
  )
]
