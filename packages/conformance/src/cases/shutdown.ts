/** How a consumer ends. */
import { BatchPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("shutdown")

/** The exchanges of a drain: it returns what it holds, ends the subscription, and returns what arrived meanwhile. */
const hops = 3

/** Checks that the only message was acked. If its lease had ended by then, it was not acked, and is redelivered. */
const isAcked = (lab: Lab): boolean => checkKept(lab, "acked", lab.eventsOf("Succeeded").length, 1, lab.runs[0]!.at)

export const cases: ReadonlyArray<Case.Case> = [
  test("a drain lets handlers end, and acks what they did", function* (lab) {
    yield* lab.send("a")
    const consumer = yield* lab.start({}, () => Effect.sleep(lab.unit))
    yield* lab.untilRuns(1)
    const report = yield* consumer.drain(lab.recovery)
    Check.equal("report", [report.complete, report.interrupted], [true, 0])
    Check.equal("state", consumer.stats().state, "stopped")
    yield* consumer.done
    if (isAcked(lab)) yield* lab.untilEmpty
  }),
  test("a drain stops consuming, and later messages wait in the broker", function* (lab) {
    const gate = yield* Deferred.make<void>()
    const consumer = yield* lab.start({}, () => Deferred.await(gate))
    yield* lab.send("a")
    yield* lab.untilRuns(1)
    const drain = yield* Effect.forkChild(consumer.drain(lab.recovery))
    yield* lab.until("the drain's beginning", () => consumer.stats().state !== "running")
    yield* lab.send("b")
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(drain)
    yield* lab.quiet()
    Check.equal(
      "runs",
      lab.runs.map(({ id }) => id),
      ["a"]
    )
    if (isAcked(lab)) yield* lab.untilPending({ ready: 1, inFlight: 0 })
  }),
  test("what no handler had begun is given back at once", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b")
    const consumer = yield* lab.start({}, () => Deferred.await(gate))
    yield* lab.until("both are delivered", () => lab.entriesOf("Delivered").length >= 2)
    yield* lab.untilRuns(1)
    const drain = yield* Effect.forkChild(consumer.drain(lab.recovery))
    const [released] = yield* lab.untilEvents("Released", 1)
    Check.equal("released", lab.eventsOf("Released").length, 1)
    Check.isTrue("not the one that runs", released!.id !== lab.runs[0]!.id)
    yield* lab.untilPending({ ready: 1, inFlight: 1 })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(drain)
  }),
  test("a handler beyond the deadline is interrupted, and its message comes back", function* (lab) {
    let aborted = false
    yield* lab.send("a")
    const consumer = yield* lab.start({}, (message, { signal }) => {
      if (message.attempts > 1 || aborted) return Effect.void
      signal.addEventListener("abort", () => (aborted = true))
      return Effect.never
    })
    yield* lab.untilRuns(1)
    const begun = lab.now()
    const report = yield* consumer.drain(lab.unit)
    lab.checkDelay("the end of the drain", lab.unit, begun, lab.now(), { hops })
    Check.equal("report", [report.complete, report.interrupted], [false, 1])
    Check.equal("aborted", aborted, true)
    Check.equal("no failure of the handler is reported", lab.eventsOf("AttemptFailed").length, 0)
    yield* lab.start()
    yield* lab.untilRuns(2)
    yield* lab.untilEvents("Succeeded", 1)
  }),
  test("verdicts that were given before the deadline are kept", function* (lab) {
    yield* lab.send("acked", "retried", "open")
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 })
    const consumer = yield* lab.startBatch({ batch }, ({ messages }) => {
      for (const message of messages) {
        if (message.id === "acked") message.ack()
        if (message.id === "retried") message.retry()
      }
      return Effect.never
    })
    yield* lab.untilRuns(3)
    yield* lab.untilEvents("Succeeded", 1)
    yield* consumer.drain(lab.unit)
    yield* lab.start()
    yield* lab.untilRuns(5)
    yield* lab.quiet()
    const again = new Map(lab.runs.slice(3).map(({ attempts, id }) => [id, attempts]))
    Check.equal("come again", [...again.keys()].toSorted(), ["open", "retried"])
    Check.equal("attempts of the retried one", again.get("retried"), 2)
  }),
  test("a second drain waits for the first and reports the end as well", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a")
    const consumer = yield* lab.start({}, () => Deferred.await(gate))
    yield* lab.untilRuns(1)
    const drain = consumer.drain(lab.recovery)
    const first = yield* Effect.forkChild(drain)
    yield* lab.until("the drain's beginning", () => consumer.stats().state !== "running")
    const ended = Effect.map(drain, ({ complete }) => [complete, consumer.stats().state])
    const second = yield* Effect.forkChild(ended, { startImmediately: true })
    yield* lab.quiet()
    yield* Deferred.succeed(gate, undefined)
    Check.equal("the end of the second", yield* Fiber.join(second), [true, "stopped"])
    Check.equal("complete", (yield* Fiber.join(first)).complete, true)
    isAcked(lab)
    const begun = lab.now()
    yield* consumer.drain()
    lab.checkDelay("a third drain", 0, begun, lab.now())
  }),
  test("a second drain with a shorter deadline cuts the first one short", function* (lab) {
    yield* lab.send("a")
    const consumer = yield* lab.start({}, () => Effect.never)
    yield* lab.untilRuns(1)
    yield* Effect.forkChild(consumer.drain(60_000))
    yield* lab.until("the drain's beginning", () => consumer.stats().state !== "running")
    const begun = lab.now()
    yield* consumer.drain(lab.unit)
    lab.checkDelay("the end of both", lab.unit, begun, lab.now(), { hops })
    yield* lab.untilPending({ ready: 1, inFlight: 0 })
  }),
  test("the end of the scope drains", function* (lab) {
    const scope = yield* Scope.make()
    yield* lab.send("a")
    const consumer = yield* Scope.provide(
      lab.start({ drainTimeout: lab.recovery }, () => Effect.sleep(lab.unit)),
      scope
    )
    yield* lab.untilRuns(1)
    yield* Scope.close(scope, Exit.void)
    Check.equal("state", consumer.stats().state, "stopped")
    if (isAcked(lab)) yield* lab.untilEmpty
  }),
  test("a promise that ignores its signal does not hold up the end", function* (lab) {
    yield* lab.send("a")
    const consumer = yield* lab.start({}, () => new Promise(() => {}))
    yield* lab.untilRuns(1)
    const begun = lab.now()
    const { interrupted } = yield* consumer.drain(lab.unit)
    lab.checkDelay("the end of the drain", lab.unit, begun, lab.now(), { hops })
    Check.equal("interrupted", interrupted, 1)
    yield* lab.untilPending({ ready: 1, inFlight: 0 })
  })
]
