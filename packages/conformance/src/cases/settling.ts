/** Settlements that fail, and what the consumer does then. */
import { BrokerError, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { broken, fails, gone } from "../internal/faults.ts"
import { checkKept, checkOnce } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("settling")

export const cases: ReadonlyArray<Case.Case> = [
  test("an ack that fails is no failure of the handler", function* (lab) {
    fails(lab, "Ack", gone)
    yield* lab.send("a")
    yield* lab.start()
    const [failed] = yield* lab.untilEvents("SettleFailed", 1)
    Check.equal(
      "told",
      [failed!.id, failed!.settlement, failed!.error instanceof BrokerError.BrokerError],
      ["a", "Ack", true]
    )
    yield* lab.quiet()
    Check.equal("failures of the handler", lab.eventsOf("AttemptFailed").length, 0)
    // If its lease has ended meanwhile, the message is redelivered, and acked.
    const again = lab.entriesOf("Delivered").length - 1
    if (again === 0) Check.equal("successes", lab.eventsOf("Succeeded").length, 0)
    Check.isTrue("settlements asked, one of each delivery", lab.entriesOf("Settling").length <= 1 + again)
  }),
  test(
    "a message whose ack was lost is not run again: its redelivery is acked",
    function* (lab) {
      fails(lab, "Ack", gone)
      yield* lab.send("a")
      yield* lab.start()
      yield* lab.untilEvents("SettleFailed", 1)
      yield* lab.harness.cutConnections!
      yield* lab.untilEvents("Succeeded", 1)
      checkKept(lab, "deliveries", lab.entriesOf("Delivered").length, 2, lab.runs[0]!.at)
      Check.equal("runs", lab.runs.length, 1)
      yield* lab.untilEmpty
    },
    Needs.boundConnections
  ),
  test(
    "where deliveries outlive connections, a message whose ack was lost is redelivered when its lease ends, and is not run",
    function* (lab) {
      fails(lab, "Ack", gone)
      yield* lab.send("a")
      yield* lab.start()
      yield* lab.untilEvents("SettleFailed", 1)
      yield* lab.untilEvents("Succeeded", 1)
      checkKept(lab, "deliveries", lab.entriesOf("Delivered").length, 2, lab.runs[0]!.at)
      Check.equal("runs", lab.runs.length, 1)
      yield* lab.untilEmpty
    },
    Needs.all(Needs.lease, Needs.lacks("connectionBound"))
  ),
  test("a retry that the broker does not take is asked again, and slows the consumer", function* (lab) {
    fails(lab, "Retry", broken("Throttled"))
    yield* lab.send("a")
    yield* lab.start({}, (message) => (lab.runs.length === 1 ? message.retry({ delay: 0 }) : undefined))
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("runs", lab.runs.length, 2)
    const [told, slowed] = [lab.eventsOf("SettleFailed"), lab.eventsOf("BackoffEntered")]
    Check.equal("reported first, and slowed because of", [told[0]?.settlement, slowed[0]?.because], ["Retry", "broker"])
    // A broker that does not answer in time fails once more, and slows the consumer down.
    lab.checkTimely("failures and pauses", [told.length, slowed.length], [1, 1], lab.runs[0]!.at)
    yield* lab.untilEmpty
  }),
  test("a dead letter that cannot be stored stays with its consumer, and no handler runs again", function* (lab) {
    fails(lab, "DeadLetter", broken("QueueFull"), Number.POSITIVE_INFINITY)
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, () => Effect.fail(new Error("no")))
    yield* lab.untilEvents("Quarantined", 1)
    yield* lab.quiet()
    Check.equal("no dead letter yet", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
    yield* lab.untilPending({ ready: 0, inFlight: 1 })
    lab.faults.settle = undefined
    yield* lab.untilEvents("DeadLettered", 1)
    Check.equal("dead letters", (yield* lab.untilDeadLetters(1)).length, 1)
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilEmpty
  }),
  test("a lost lease counts as a failure for consumer backoff", function* (lab) {
    fails(lab, "Ack", broken("LeaseLost"))
    yield* lab.send("a", "b")
    const consumerBackoff = ConsumerBackoff.nsq({ multiplier: lab.unit / 2 })
    yield* lab.start({ consumerBackoff })
    const [entered] = yield* lab.untilEvents("BackoffEntered", 1)
    Check.equal("because", entered!.because, "handler")
  }),
  test("settlements that fail use up no credit: the consumer goes on", function* (lab) {
    fails(lab, "Ack", broken("Timeout"), 3)
    yield* lab.send("a", "b", "c", "d", "e", "f", "g", "h")
    yield* lab.start()
    yield* lab.until("a run of every message", () => new Set(lab.runs.map(({ id }) => id)).size === 8)
  }),
  test("an ack that the broker was too busy for is settled after all, without a second run", function* (lab) {
    fails(lab, "Ack", broken("Throttled"))
    yield* lab.send("a")
    yield* lab.start()
    yield* lab.untilEvents("SettleFailed", 1)
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilEmpty
  }),
  test("a release that fails brings the message back all the same", function* (lab) {
    fails(lab, "Release", broken("Throttled"))
    yield* lab.publish("a", { notBefore: lab.now() + 2 * lab.unit })
    yield* lab.start()
    yield* lab.untilEvents("Succeeded", 1)
  }),
  test("a message that no handler sees waits for its dead letter's storage, and does not go round", function* (lab) {
    fails(lab, "DeadLetter", broken("Throttled"), 2)
    yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("{"), {})
    yield* lab.start()
    yield* lab.untilEvents("DeadLettered", 1)
    const [first, second, third] = lab
      .entriesOf("Settling")
      .filter(({ settlement }) => settlement._tag === "DeadLetter")
    // A message whose lease has ended is settled as soon as it is redelivered.
    if (checkOnce(lab, first!.at)) {
      lab.checkDelay("the first pause", 2000, first!.at, second!.at)
      lab.checkDelay("the second pause", 4000, second!.at, third!.at)
    }
    Check.equal("dead letters", (yield* lab.untilDeadLetters(1)).length, 1)
    yield* lab.untilEmpty
  })
]
