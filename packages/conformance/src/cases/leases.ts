/** Leases that end, are extended, or are outdated: what the broker does, with a process on each side of the queue. */
import { RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("leases")

/** Milliseconds within which a message is redelivered whose lease was not extended. */
const within = (lab: Lab) => lab.capabilities.lease!.duration + lab.recovery

/** A subscription that takes this many deliveries, and no more. */
const taken = (lab: Lab, count: number, keep = false) =>
  Effect.gen(function* () {
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: count, keep, within: within(lab) })
    const deliveries = yield* port.take(count)
    port.credit(0)
    return { ...port, deliveries }
  })

/**
 * Deliveries whose leases end in one process, and those of the same messages in another. A process counts a lease from the time
 * when it received the message, which is later than the broker sent it. On a late machine the lease ends here after the broker
 * has given the message to the other process, which extends its own leases unless `keep` is false.
 */
const outlived = (lab: Lab, count: number, keep = true) =>
  Effect.gen(function* () {
    for (let n = 1; n <= count; n++) yield* lab.publish(`m${n}`)
    const first = yield* taken(lab, count)
    const ends = lab.now() + lab.capabilities.lease!.duration
    const other = yield* lab.another
    const taking = lab.now()
    const second = yield* taken(other, count, keep)
    yield* lab.until("the end of the leases by the clock of the first process", () => lab.now() > ends, within(lab))
    return { first, second, other, taking }
  })

/** Extends the leases of this many messages in each call, for longer than a lease. */
const keeps = (lab: Lab, count: number) =>
  Effect.gen(function* () {
    const { duration } = lab.capabilities.lease!
    for (let n = 1; n <= count; n++) yield* lab.publish(`m${n}`)
    // It opens before the leases begin, because connecting takes time. Leases that are not extended meanwhile would be lost.
    const other = yield* lab.another
    const elsewhere = yield* Port.open(other.broker, { queue: lab.queue })
    const begun = lab.now()
    const port = yield* taken(lab, count)
    elsewhere.credit(count)
    const told: Array<unknown> = []
    for (let time = 0; time < 1.5 * duration; time += duration / 4) {
      yield* Effect.sleep(duration / 4)
      told.push(...(yield* port.extendAll(port.deliveries)))
    }
    checkKept(lab, "reported, and delivered elsewhere", [told.length, elsewhere.waiting()], [0, 0], begun)
    const unsettled = yield* port.settleAll(
      port.deliveries.map((delivery) => ({ delivery, settlement: Settlement.Ack }))
    )
    checkKept(lab, "their settlements", unsettled.length, 0, begun)
  })

const error = { name: "Error", message: "no" }

const settlementsOf = ({ dlq }: Lab) => [
  Settlement.Ack,
  Settlement.Retry(0),
  Settlement.Release(),
  Settlement.Drop("dropped", error),
  Settlement.DeadLetter("permanent", dlq, error)
]

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a lease that is not extended ends: the message comes to another process, and the attempt counts",
    function* (lab) {
      const { first, second, taking } = yield* outlived(lab, 1)
      const [before, after] = [first.deliveries[0]!, second.deliveries[0]!]
      Check.equal("messages", [before.metadata.id, after.metadata.id], ["m1", "m1"])
      // A broker may count more than there were, never fewer.
      Check.isTrue("attempts", before.attempts === 1 && after.attempts >= 2, [before.attempts, after.attempts])
      Check.isTrue("it is said to be a redelivery, or nothing is said", after.redelivered !== false)
      const unsettled = yield* second.settle(after, Settlement.Ack)
      if (checkKept(lab, "its settlement", unsettled.length, 0, taking)) yield* lab.untilEmpty
    },
    Needs.lease
  ),
  test(
    "a message whose leases end in one process after the other is a dead letter, and the next handler does not see it",
    function* (lab) {
      const { other } = yield* outlived(lab, 1, false)
      yield* other.start({ retry: RetryPolicy.make({ maxRetries: 0, maxDeliveries: 2 }) })
      yield* other.until("its end", () => other.eventsOf("DeadLettered").length === 1, within(lab))
      Check.equal("runs", other.runs.length, 0)
      const [letter] = yield* lab.untilDeadLetters(1)
      const { attempts, reason } = letter!.metadata.deadLetter!
      Check.isTrue("why", reason === "too-many-deliveries" && attempts >= 3, { reason, attempts })
      yield* lab.untilEmpty
    },
    Needs.lease
  ),
  test(
    "extending reports a lease that has ended, and leaves the other process its delivery",
    function* (lab) {
      const { first, second, taking } = yield* outlived(lab, 1)
      const told = yield* first.extend(first.deliveries[0]!)
      Check.equal(
        "told",
        told.map(({ fate }) => fate),
        ["lost"]
      )
      const unsettled = yield* second.settle(second.deliveries[0]!, Settlement.Ack)
      if (checkKept(lab, "the other's settlement", unsettled.length, 0, taking)) yield* lab.untilEmpty
    },
    Needs.lease
  ),
  test(
    "a message whose lease is extended comes to no other process, and stays with its own",
    (lab) => keeps(lab, 1),
    Needs.lease
  ),
  test(
    "messages whose leases are extended in one call come to no other process, and stay with their own",
    (lab) => keeps(lab, 3),
    Needs.lease
  ),
  test(
    "outdated receipts settle nothing: they are reported as lost, and the newer deliveries stay with their process",
    function* (lab) {
      const settlements = settlementsOf(lab)
      const { first, other, second, taking } = yield* outlived(lab, settlements.length)
      const told = yield* Effect.forEach(first.deliveries, (delivery, index) =>
        first.settle(delivery, settlements[index]!)
      )
      Check.equal(
        "told",
        told.map((failures) => failures.map(({ fate }) => fate)),
        settlements.map(() => ["lost"])
      )
      const kept = yield* Effect.forEach(second.deliveries, (delivery) => second.settle(delivery, Settlement.Retry(0)))
      if (!checkKept(lab, "the newer settlements", kept.flat().length, 0, taking)) return
      const last = yield* taken(other, settlements.length, true)
      Check.equal(
        "the messages in the end",
        last.deliveries.map(({ metadata }) => metadata.id).toSorted(),
        settlements.map((_, index) => `m${index + 1}`)
      )
      Check.isTrue(
        "their attempts",
        last.deliveries.every(({ attempts }) => attempts >= 3)
      )
      const ended = yield* Effect.forEach(last.deliveries, (delivery) => last.settle(delivery, Settlement.Ack))
      Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
      if (checkKept(lab, "the last settlements", ended.flat().length, 0, taking)) yield* lab.untilEmpty
    },
    Needs.lease
  )
]
