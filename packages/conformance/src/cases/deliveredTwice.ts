/** Two deliveries of one message: settling one of them ends both, and later calls on the other cannot undo that. */
import { type Delivery } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { within } from "../internal/calls.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("two deliveries of one message")

/**
 * Long enough to be observed. An adapter that ends redeliveries of a settled message hides a retry that has arrived, but none
 * that is still delayed.
 */
const minute = 60_000

const letter = ({ dlq }: Lab) => Settlement.DeadLetter("permanent", dlq, { name: "Error", message: "no" })

const byId = (deliveries: ReadonlyArray<Delivery.Delivery>) =>
  new Map(deliveries.map((delivery) => [delivery.metadata.id, delivery]))

/** A minute, if the broker counts delayed messages; else a delay that a case can wait for. */
const retryFor = ({ capabilities, unit }: Lab) => Settlement.Retry(capabilities.counts.delayed ? minute : unit)

/** Nothing is left of the messages but this many dead letters, and nothing arrives. */
const balances = (lab: Lab, port: Port.Port, letters: number) =>
  Effect.gen(function* () {
    yield* lab.quiet(2 * lab.unit + lab.slack)
    Check.equal("deliveries that come", port.waiting(), 0)
    yield* lab.untilEmpty
    Check.equal("dead letters", (yield* lab.untilDeadLetters(letters)).length, letters)
  })

/**
 * The deliveries of the messages are lost, and the messages are redelivered. The new deliveries are settled, the old ones
 * retried.
 */
const settlesNewer = (lab: Lab, loss: Effect.Effect<unknown, unknown>, keep: boolean) =>
  Effect.gen(function* () {
    const settlements = [Settlement.Ack, letter(lab)]
    for (const { _tag } of settlements) yield* lab.publish(_tag)
    const credit = settlements.length
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit, keep, within: within(lab) })
    const older = byId(yield* port.take(credit))
    yield* loss
    const begun = lab.now()
    const newer = byId(yield* port.take(credit))
    if (!checkKept(lab, "messages that came", [older.size, newer.size], [credit, credit], begun)) return
    for (const settlement of settlements) {
      const [before, after] = [older.get(settlement._tag)!, newer.get(settlement._tag)!]
      const failures = yield* port.settle(after, settlement)
      if (!checkKept(lab, `the ${settlement._tag}`, failures.length, 0, begun)) return
      const told = yield* port.settle(before, retryFor(lab))
      Check.isTrue(
        "the retry of the other is reported as lost, if it is reported as failed",
        told.every(({ fate }) => fate === "lost"),
        told.map(({ fate }) => fate)
      )
    }
    yield* balances(lab, port, 1)
  })

/** Waits until the leases of the deliveries so far are over by this process's clock, which started late. */
const leasesEnd = (lab: Lab) =>
  Effect.suspend(() => {
    const ends = lab.now() + lab.capabilities.lease!.duration
    return lab.until("the end of the first leases", () => lab.now() > ends, within(lab))
  })

/** Acquires in a new scope, which `close` of the returned value closes. */
const released = <A, E, R>(acquire: Effect.Effect<A, E, R | Scope.Scope>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
    const value = yield* Effect.provideService(acquire, Scope.Scope, scope)
    return { value, close: Scope.close(scope, Exit.void) }
  })

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a message that was redelivered on a new connection is settled once: a retry of its first delivery makes no second one",
    (lab) => settlesNewer(lab, lab.harness.cutConnections!, true),
    Needs.boundConnections
  ),
  test(
    "a message that was redelivered with a new lease is settled once: a retry of its first delivery makes no second one",
    (lab) => settlesNewer(lab, leasesEnd(lab), false),
    Needs.all(Needs.lease, Needs.lacks("connectionBound"))
  ),
  test(
    "a message that was redelivered while its copy was in flight is settled by that: a retry of it only ends it",
    function* (lab) {
      for (const id of ["a", "b"]) yield* lab.publish(id)
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 2, keep: true, within: within(lab) })
      const begun = lab.now()
      const first = byId(yield* port.take(2))
      const late = yield* released(lab.failNext("publish", "lateAnswer"))
      const settling = yield* Effect.forkChild(port.settle(first.get("a")!, letter(lab)))
      yield* lab.until("the copy", late.value, lab.recovery)
      // The connection of the deliveries is lost with this ack, but the connection of the copy is not.
      const lost = yield* lab.failNext("settle", "lostRequest")
      yield* port.settle(first.get("b")!, Settlement.Ack)
      yield* lab.until("the loss", lost, lab.recovery)
      let again = yield* port.next
      // If the ack of the other was reported as lost, it is redelivered as well.
      for (; again.metadata.id !== "a"; again = yield* port.next) yield* port.settle(again, Settlement.Ack)
      yield* late.close
      const copied = yield* Fiber.join(settling)
      const retried = yield* port.settle(again, retryFor(lab))
      const failures = [copied.length, retried.length]
      if (checkKept(lab, "failures of the copy, and of the retry of the other", failures, [0, 0], begun))
        yield* balances(lab, port, 1)
    },
    Needs.all(Needs.boundConnections, Needs.failNext("publish", "lateAnswer"), Needs.failNext("settle", "lostRequest"))
  )
]
