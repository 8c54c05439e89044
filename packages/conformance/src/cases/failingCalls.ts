/** Calls of the broker that fail below the adapter: the broker refuses, its answer is lost, or the request is lost. */
import { BrokerError, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { type Loss, losses } from "../Harness.ts"
import { ends, within, words } from "../internal/calls.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("failing calls")

const settles = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    const happened = yield* lab.failNext("settle", failure)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* lab.start()
        yield* lab.send("a")
        yield* lab.until("the failure", happened, lab.recovery)
        yield* lab.send("b")
        // An ack that was done without an answer leaves no trace.
        const succeeded = () => lab.eventsOf("Succeeded").some(({ id }) => id === "b")
        yield* lab.until("the end of the next", succeeded, within(lab))
        const settled = () => lab.entriesOf("Settled").length === lab.entriesOf("Settling").length
        yield* lab.until("an answer to every settlement", settled, within(lab))
        yield* lab.untilEmpty
      })
    )
    // A message that only seemed to be settled is not redelivered when its consumer ends.
    yield* lab.untilEmpty
    Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a", "b"])
  })

const buries = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, () =>
      Effect.andThen(Deferred.await(gate), Effect.fail(new TypeError("no")))
    )
    yield* lab.untilRuns(1)
    const happened = yield* lab.failNext("publish", failure)
    const begun = lab.now()
    yield* Deferred.succeed(gate, undefined)
    yield* lab.until("the failure", happened, lab.recovery)
    yield* lab.until("its end", () => lab.eventsOf("DeadLettered").length === 1, within(lab))
    yield* lab.untilEmpty
    const letters = yield* lab.untilDeadLetters(1)
    Check.equal(
      "dead letters",
      [...new Set(letters.map(({ metadata }) => `${metadata.id} ${metadata.deadLetter?.error.name}`))],
      ["a TypeError"]
    )
    // An unconfirmed copy may exist in addition to the confirmed one.
    if (failure === "refused") checkKept(lab, "copies", letters.length, 1, begun)
    Check.equal("runs", lab.runs.length, 1)
  })

const abandons = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    const open = Port.open(lab.broker, { queue: lab.queue, credit: 1, within: lab.recovery })
    const letter = Settlement.DeadLetter("permanent", lab.dlq, { name: "Error", message: "no" })
    yield* lab.publish("a")
    yield* Effect.scoped(
      Effect.gen(function* () {
        const port = yield* open
        const delivery = yield* port.next
        const happened = yield* lab.failNext("publish", failure)
        const settling = yield* Effect.forkChild(port.settle(delivery, letter))
        yield* lab.until("the failure", happened, lab.recovery)
        yield* Fiber.interrupt(settling)
      })
    )
    const { waiting } = yield* open
    const letters = lab.harness.deadLetters(lab.dlq)
    const isThere = Effect.map(letters, ({ length }) => length + waiting() > 0 || undefined)
    yield* Wait.found("the message or its letter", isThere, { within: within(lab), every: lab.unit })
  })

/** A settlement ends with its subscription, whatever becomes of the copy that it waits for. */
const endsWithin = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    const letter = Settlement.DeadLetter("permanent", lab.dlq, { name: "Error", message: "no" })
    yield* lab.publish("a")
    const settling = yield* Effect.scoped(
      Effect.gen(function* () {
        const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: lab.recovery })
        const delivery = yield* port.next
        const happened = yield* lab.failNext("publish", failure)
        const fiber = yield* Effect.forkDetach(port.settle(delivery, letter))
        yield* lab.until("the failure", happened, lab.recovery)
        return fiber
      })
    )
    yield* ends(lab, "the settlement", Fiber.join(settling))
  })

/** Why a publish has failed. */
const reasons: Readonly<Record<Loss, ReadonlyArray<string>>> = {
  refused: ["Throttled"],
  lostRequest: ["ConnectionFailed", "ConnectionLost", "Timeout"],
  lostAnswer: ["ConnectionFailed", "ConnectionLost", "Timeout"]
}

const sends = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    yield* lab.publish("first")
    const happened = yield* lab.failNext("publish", failure)
    const told = yield* ends(lab, "the publish", Effect.result(lab.publish("a")))
    Check.isTrue("the call has failed", happened())
    // A refusal by the broker, and an answer that never arrived, are errors; a message that was reported as stored exists.
    if (Result.isFailure(told)) {
      const reason = told.failure instanceof BrokerError.BrokerError ? told.failure.reason : String(told.failure)
      Check.isTrue("its reason", reasons[failure].includes(reason), reason)
      yield* lab.publish("a")
    }
    const stored = Effect.map(lab.harness.pending(lab.queue), ({ ready }) => (ready ?? 2) >= 2 || undefined)
    yield* Wait.found("both messages", stored, { within: lab.recovery })
    yield* lab.start()
    yield* lab.until("both are handled", () => new Set(lab.runs.map(({ id }) => id)).size === 2, lab.recovery)
    yield* lab.untilEmpty
  })

const sendsMany = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    yield* lab.publish("first")
    const producer = yield* lab.producer<string>()
    const ids = Array.from({ length: 25 }, (_, index) => `m${index}`)
    const happened = yield* lab.failNext("publish", failure)
    const batch = producer.sendBatch(ids.map((id) => ({ id, body: id })))
    const told = yield* ends(lab, "the batch", Effect.result(batch))
    Check.isTrue("the call has failed", happened())
    const entries = Result.isSuccess(told) ? ids.map((id) => ({ id, status: "sent" })) : entriesOf(told.failure)
    Check.equal(
      "the entries, in order",
      entries.map(({ id }) => id),
      ids
    )
    const ofStatus = (wanted: string) => entries.flatMap(({ id = "", status }) => (status === wanted ? [id] : []))
    yield* lab.start()
    const seen = () => new Set(lab.runs.map(({ id }) => id))
    yield* lab.until("what was sent", () => ofStatus("sent").every((id) => seen().has(id)), lab.recovery)
    yield* lab.untilEmpty
    Check.equal(
      "stored messages that were reported as failed",
      ofStatus("failed").filter((id) => seen().has(id)),
      []
    )
  })

const entriesOf = (error: unknown): ReadonlyArray<BrokerError.Entry> =>
  error instanceof BrokerError.BrokerError ? (error.entries ?? []) : []

const receives = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    yield* lab.send("a")
    const happened = yield* lab.failNext("receive", failure)
    yield* lab.start()
    yield* lab.until("the failure", happened, lab.recovery)
    yield* lab.untilEvents("Succeeded", 1, within(lab))
    yield* lab.send("b")
    yield* lab.untilEvents("Succeeded", 2, within(lab))
    Check.equal(
      "runs",
      lab.runs.map(({ id }) => id),
      ["a", "b"]
    )
    yield* lab.untilEmpty
  })

const extendsAgain = (lab: Lab, failure: Loss) =>
  Effect.gen(function* () {
    const { duration } = lab.capabilities.lease!
    yield* lab.publish("a")
    const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within: lab.recovery })
    const delivery = yield* port.next
    // An adapter need not extend a lease that begins at this moment.
    yield* Effect.sleep(lab.unit)
    const happened = yield* lab.failNext("extend", failure)
    const begun = lab.now()
    const told = yield* ends(lab, "the extension", port.extend(delivery))
    Check.isTrue("the call has failed", happened())
    lab.checkTimely("reported as lost", told.filter(({ fate }) => fate === "lost").length, 0, begun)
    const again = yield* port.extend(delivery)
    yield* Effect.sleep(0.7 * duration)
    const settled = yield* port.settle(delivery, Settlement.Ack)
    lab.checkTimely("failures of what came after", [again.length, settled.length], [0, 0], begun)
  })

/** After these failures, no copy exists. */
const unstored = losses.filter((failure) => failure !== "lostAnswer")

export const cases: ReadonlyArray<Case.Case> = [
  ...losses.flatMap((failure) => [
    test(
      `an ack ${words[failure]} is settled in the end, without a second run`,
      (lab) => settles(lab, failure),
      Needs.failNext("settle", failure)
    ),
    test(
      `a dead letter's copy ${words[failure]} is stored in the end, and until then its original stays`,
      (lab) => buries(lab, failure),
      Needs.failNext("publish", failure)
    ),
    test(
      `a publish ${words[failure]} ends, and is reported as failed unless the message is stored`,
      (lab) => sends(lab, failure),
      Needs.failNext("publish", failure)
    ),
    test(
      `a batch with a publish ${words[failure]} reports for each entry whether it is stored`,
      (lab) => sendsMany(lab, failure),
      Needs.failNext("publish", failure)
    ),
    test(
      `a receive ${words[failure]} is followed by others, and loses nothing`,
      (lab) => receives(lab, failure),
      Needs.failNext("receive", failure)
    ),
    test(
      `an extension ${words[failure]} ends, and costs nothing while the lease lasts`,
      (lab) => extendsAgain(lab, failure),
      Needs.all(Needs.failNext("extend", failure), Needs.lease)
    )
  ]),
  ...unstored.map((failure) =>
    test(
      `a dead letter's copy ${words[failure]} before its subscription ends leaves its original there`,
      (lab) => abandons(lab, failure),
      Needs.failNext("publish", failure)
    )
  ),
  ...losses.map((failure) =>
    test(
      `the settlement of a dead letter's copy ${words[failure]} ends, although its subscription has ended`,
      (lab) => endsWithin(lab, failure),
      Needs.failNext("publish", failure)
    )
  )
]
