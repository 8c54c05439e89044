/** Deliveries that are lost before their handler begins, or while it runs: they cost no attempt, and no second run. */
import { BatchPolicy, Codec, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { broken, fails, gone } from "../internal/faults.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("lost deliveries")

/** Takes away the consumer's deliveries. */
type Loss = Effect.Effect<unknown, unknown>

/** From now on no lease is extended, and no call reports it. */
const unextended = (lab: Lab): Loss =>
  Effect.sync(() => {
    lab.faults.extend = () => broken("Timeout")
  })

/** Every message that waits for its batch is lost this often, and then the batch is filled: each is handled once. */
const losesWaiting = (lab: Lab, retry: RetryPolicy.RetryPolicy, loss: Loss) =>
  Effect.gen(function* () {
    const times = retry.maxDeliveries + 3
    const batch = BatchPolicy.make({ maxBatchSize: 5, maxBatchTimeout: 60_000 })
    yield* lab.startBatch({ retry, batch })
    yield* lab.send("a", "b")
    for (let count = 1; count <= times; count++) {
      yield* lab.until(`delivery ${count}`, () => lab.entriesOf("Delivered").length >= 2 * count, lab.recovery)
      yield* loss
      // In virtual time, a pause of 0 would let the batch's own timer run next.
      yield* Effect.sleep(1)
    }
    yield* lab.until("the last delivery", () => lab.entriesOf("Delivered").length >= 2 * (times + 1), lab.recovery)
    lab.faults.extend = undefined
    yield* lab.send("c", "d", "e")
    yield* lab.untilEvents("Succeeded", 5, lab.recovery)
    yield* lab.quiet()
    Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a", "b", "c", "d", "e"])
    Check.equal("one batch", new Set(lab.runs.map((run) => run.batch)).size, 1)
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 0)
    yield* lab.untilEmpty
  })

/** The delivery is lost while the handler runs, which then ends in this way: it has one run and one end. */
const losesRunning = (lab: Lab, loss: Loss, end: "Succeeded" | "DeadLettered") =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, () =>
      Effect.andThen(Deferred.await(gate), end === "Succeeded" ? Effect.void : Effect.fail(new Error("no")))
    )
    yield* lab.untilRuns(1)
    yield* loss
    yield* lab.until("the redelivery", () => lab.entriesOf("Delivered").length >= 2, lab.recovery)
    lab.faults.extend = undefined
    const begun = lab.now()
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents(end, 1)
    yield* lab.untilEmpty
    yield* lab.quiet()
    Check.equal("runs", lab.runs.length, 1)
    const ends = lab.events.flatMap(({ _tag }) => (_tag === "Succeeded" || _tag === "DeadLettered" ? [_tag] : []))
    Check.equal("ends", new Set(ends), new Set([end]))
    const wanted = end === "Succeeded" ? 0 : 1
    const letters = yield* lab.untilDeadLetters(wanted)
    // A message that is settled after its lease has ended is settled once more, and a dead letter stored once more.
    checkKept(lab, "ends and dead letters", [ends.length, letters.length], [1, wanted], begun)
  })

/** Twenty messages of one id. */
const bodies = Array.from({ length: 20 }, (_, index) => index)

const sendSameId = (lab: Lab) =>
  Effect.flatMap(lab.producer<number>(), ({ sendBatch }) => sendBatch(bodies.map((body) => ({ id: "same", body }))))

const handled = (lab: Lab) => lab.runs.map(({ body }) => Number(body)).toSorted((a, b) => a - b)

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "connections that break again and again cost no attempt of messages that wait for their batch",
    (lab) => losesWaiting(lab, RetryPolicy.make({ maxRetries: 0 }), lab.harness.cutConnections!),
    Needs.boundConnections
  ),
  test(
    "leases that end again and again cost no attempt of messages that wait for their batch",
    (lab) => losesWaiting(lab, RetryPolicy.make({ maxRetries: 0, maxDeliveries: 2 }), unextended(lab)),
    Needs.lease
  ),
  test(
    "with one attempt, a connection that breaks in a run that succeeds leaves one run and no dead letter",
    (lab) => losesRunning(lab, lab.harness.cutConnections!, "Succeeded"),
    Needs.boundConnections
  ),
  test(
    "with one attempt, a connection that breaks in a run that fails leaves one run and one dead letter",
    (lab) => losesRunning(lab, lab.harness.cutConnections!, "DeadLettered"),
    Needs.boundConnections
  ),
  test(
    "with one attempt, a lease that ends in a run that succeeds leaves one run and no dead letter",
    (lab) => losesRunning(lab, unextended(lab), "Succeeded"),
    Needs.lease
  ),
  test(
    "with one attempt, a lease that ends in a run that fails leaves one run and one dead letter",
    (lab) => losesRunning(lab, unextended(lab), "DeadLettered"),
    Needs.lease
  ),
  test("messages with the same id are separate messages: each is handled, and once", function* (lab) {
    yield* sendSameId(lab)
    yield* lab.start({ concurrency: 10 }, () => Effect.sleep(10))
    yield* lab.untilEvents("Succeeded", bodies.length)
    yield* lab.quiet()
    Check.equal("handled", handled(lab), bodies)
    yield* lab.untilEmpty
  }),
  test(
    "messages of one id are each handled once, also when an ack of one of them is lost with the connection",
    function* (lab) {
      const gate = yield* Deferred.make<void>()
      fails(lab, "Ack", gone)
      yield* sendSameId(lab)
      yield* lab.start({ concurrency: 10, retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ body }) =>
        lab.runs.length === 1
          ? undefined
          : Effect.andThen(
              Deferred.await(gate),
              body === lab.runs[10]?.body ? Effect.fail(new Error("no")) : Effect.void
            )
      )
      yield* lab.untilEvents("SettleFailed", 1)
      yield* lab.untilRuns(11)
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      yield* Deferred.succeed(gate, undefined)
      yield* lab.untilEvents("Succeeded", bodies.length - 1, lab.recovery)
      const [letter] = yield* lab.untilDeadLetters(1)
      yield* lab.quiet()
      Check.equal("handled", handled(lab), bodies)
      Check.equal("the one that failed", Codec.json.decode(letter!.body, {}), lab.runs[10]!.body)
      yield* lab.untilEmpty
    },
    Needs.boundConnections
  ),
  test(
    "messages of one id are each handled once, also when an ack of one of them is lost with the lease",
    function* (lab) {
      fails(lab, "Ack", gone)
      yield* sendSameId(lab)
      yield* lab.start({ concurrency: 10 }, () => Effect.sleep(10))
      yield* lab.untilEvents("Succeeded", bodies.length, lab.recovery)
      yield* lab.quiet()
      Check.equal("handled", handled(lab), bodies)
      yield* lab.untilEmpty
    },
    Needs.all(Needs.lease, Needs.lacks("connectionBound"))
  )
]
