/** Deliveries at the port: each is settled once, or redelivered. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("settling")

export const cases: ReadonlyArray<Case.Case> = [
  test("a delivery is settled once: what comes after does not reach the broker", function* (lab) {
    yield* lab.publish("a")
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, keep: true })
    const begun = lab.now()
    const delivery = yield* port.next
    yield* port.settle(delivery, Settlement.Retry(0))
    const again = yield* port.settle(delivery, Settlement.Ack)
    Check.equal("the second settlement is refused", again.length, 1)
    const second = yield* port.next
    if (!checkKept(lab, "the retry was kept", [second.metadata.id, second.attempts], ["a", 2], begun)) return
    Check.equal("a third settlement is refused", (yield* port.settle(delivery, Settlement.Ack)).length, 1)
    const last = yield* port.settle(second, Settlement.Ack)
    if (checkKept(lab, "the last settlement", last.length, 0, begun)) yield* lab.untilEmpty
  }),
  test("of settlements in one call, each that fails is reported, and the others are done", function* (lab) {
    for (const id of ["a", "b", "c"]) yield* lab.publish(id)
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 3, keep: true })
    const begun = lab.now()
    const deliveries = yield* port.take(3)
    const ack = (some: typeof deliveries) =>
      port.settleAll(some.map((delivery) => ({ delivery, settlement: Settlement.Ack })))
    const [first, second] = deliveries
    if (!checkKept(lab, "failures of two", (yield* ack([first!, second!])).length, 0, begun)) return
    const told = (yield* ack(deliveries)).map(({ delivery }) => delivery.metadata.id).toSorted()
    if (checkKept(lab, "reported", told, [first!.metadata.id, second!.metadata.id].toSorted(), begun))
      yield* lab.untilEmpty
  }),
  test(
    "a settlement of a lost connection is refused, and the message is redelivered on the new one",
    function* (lab) {
      yield* lab.publish("a")
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, keep: true })
      const begun = lab.now()
      const stale = yield* port.next
      yield* lab.harness.cutConnections!
      const fresh = yield* port.next
      const failures = yield* port.settle(stale, Settlement.Ack)
      Check.equal(
        "refused",
        failures.map(({ delivery }) => delivery === stale),
        [true]
      )
      Check.equal("the message is there", fresh.metadata.id, "a")
      yield* lab.untilPending({ ready: 0, inFlight: 1 })
      const own = yield* port.settle(fresh, Settlement.Ack)
      if (checkKept(lab, "its own settlement", own.length, 0, begun)) yield* lab.untilEmpty
    },
    Needs.boundConnections
  ),
  test("no more deliveries are unsettled than the credit allows, and credit 0 stops them", function* (lab) {
    for (const id of ["a", "b", "c", "d", "e"]) yield* lab.publish(id)
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 2, keep: true })
    const begun = lab.now()
    const [first, second] = [yield* port.next, yield* port.next]
    yield* lab.quiet()
    if (!checkKept(lab, "waiting", port.waiting(), 0, begun)) return
    port.credit(0)
    yield* port.settle(first, Settlement.Ack)
    yield* port.settle(second, Settlement.Retry(0))
    yield* lab.quiet()
    if (!checkKept(lab, "delivered without credit", port.waiting(), 0, begun)) return
    port.credit(4)
    yield* lab.until("four more", () => port.waiting() >= 4)
  }),
  test("unsettled messages of a subscription that ends are redelivered", function* (lab) {
    const ids = ["a", "b", "c"]
    for (const id of ids) yield* lab.publish(id)
    const begun = lab.now()
    const acked = yield* Effect.scoped(
      Effect.gen(function* () {
        const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: ids.length, keep: true })
        const [, second] = yield* port.take(ids.length)
        // Neither an older nor a younger delivery is settled with it.
        const told = yield* port.settle(second!, Settlement.Ack)
        return checkKept(lab, "its settlement", told.length, 0, begun) ? second!.metadata.id : undefined
      })
    )
    if (acked === undefined) return
    yield* lab.start()
    yield* lab.untilRuns(ids.length - 1)
    yield* lab.quiet()
    Check.equal(
      "runs",
      lab.runs.map(({ id }) => id).toSorted(),
      ids.filter((id) => id !== acked)
    )
    yield* lab.untilEmpty
  }),
  test("what was settled comes to no other process when its subscription ends, nor when its lease would", function* (lab) {
    const error = { name: "Error", message: "no" }
    const settlements = [
      Settlement.Ack,
      Settlement.Drop("dropped", error),
      Settlement.DeadLetter("permanent", lab.dlq, error)
    ]
    for (const { _tag } of settlements) yield* lab.publish(_tag)
    const begun = lab.now()
    const failures = yield* Effect.scoped(
      Effect.gen(function* () {
        const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: settlements.length, keep: true })
        const settle = (settlement: Settlement.Settlement) =>
          Effect.flatMap(port.next, (delivery) => port.settle(delivery, settlement))
        return (yield* Effect.forEach(settlements, settle)).flat()
      })
    )
    if (!checkKept(lab, "failures", failures.length, 0, begun)) return
    const other = yield* lab.another
    const { waiting } = yield* Port.open(other.broker, { queue: lab.queue, credit: settlements.length })
    yield* lab.quiet(lab.unit + (lab.capabilities.lease?.duration ?? 0))
    Check.equal("delivered elsewhere", waiting(), 0)
    Check.equal("dead letters", (yield* lab.untilDeadLetters(1)).length, 1)
    yield* lab.untilEmpty
  })
]
