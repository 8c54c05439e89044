/** When the calls of a handler take effect. */
import { BatchPolicy, type Handler } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("calls")

const two = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 60_000 })

const settled = (lab: Lab) =>
  lab.entriesOf("Settled").map((entry) => `${entry.delivery.metadata.id} ${entry.settlement._tag}`)

export const cases: ReadonlyArray<Case.Case> = [
  test("an ack is handed over while the rest of the batch goes on", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b")
    yield* lab.startBatch({ batch: two }, (batch) => {
      batch.messages.find(({ id }) => id === "a")?.ack()
      return Deferred.await(gate)
    })
    yield* lab.until("the ack of a", () => settled(lab).length > 0)
    Check.equal("settled", new Set(settled(lab)), new Set(["a Ack"]))
    yield* lab.untilPending({ ready: 0, inFlight: 1 })
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 2)
    yield* lab.untilEmpty
  }),
  test("a retry with its own delay is sent at once, one without waits for the batch", function* (lab) {
    const gate = yield* Deferred.make<void>()
    yield* lab.send("a", "b")
    yield* lab.startBatch({ batch: two }, (batch) => {
      for (const message of batch.messages) {
        if (message.attempts === 1) message.retry(message.id === "a" ? { delay: 0 } : {})
      }
      return Deferred.await(gate)
    })
    yield* lab.until("the retry of a", () => settled(lab).length > 0)
    yield* lab.quiet()
    Check.equal("settled", new Set(settled(lab)), new Set(["a Retry"]))
    yield* Deferred.succeed(gate, undefined)
    yield* lab.until("the retry of b", () => settled(lab).includes("b Retry"))
  }),
  test(
    "an acked message does not come back though the connection breaks before the batch ends",
    function* (lab) {
      yield* lab.send("a", "b")
      yield* lab.startBatch({ batch: two, drainTimeout: 0 }, (batch) => {
        if (lab.entriesOf("Reconnected").length > 0) return undefined
        batch.messages.find(({ id }) => id === "a")?.ack()
        return Effect.never
      })
      yield* lab.until("the ack of a", () => settled(lab).length > 0)
      // A broker that does not answer acks may not have read this one yet.
      yield* lab.untilPending({ ready: 0, inFlight: 1 })
      yield* lab.harness.cutConnections!
      const again = () => lab.entriesOf("Delivered").slice(2)
      yield* lab.until("the redelivery of b", () => again().length > 0)
      yield* lab.quiet()
      Check.equal("redelivered", new Set(again().map(({ delivery }) => delivery.metadata.id)), new Set(["b"]))
    },
    Needs.boundConnections
  ),
  test("calls that come too late are reported, change nothing and never throw", function* (lab) {
    let kept: Handler.Batch<unknown> | undefined
    yield* lab.send("a", "b")
    yield* lab.startBatch({ batch: two }, (batch) => {
      kept = batch
      batch.ackAll()
      batch.messages[0]!.retry()
      batch.retryAll({ delay: 0 })
    })
    yield* lab.untilEvents("Succeeded", 2)
    kept!.messages[1]!.retry({ delay: 0 })
    kept!.retryAll()
    kept!.ackAll()
    yield* lab.quiet()
    Check.equal(
      "told",
      lab.eventsOf("CallIgnored").map(({ call }) => call),
      ["Retry", "RetryAll", "Retry", "RetryAll", "AckAll"]
    )
    const passed = [lab.entriesOf("Delivered").length, settled(lab).length]
    checkKept(lab, "deliveries and settlements", passed, [2, 2], lab.runs[0]!.at)
    yield* lab.untilEmpty
  }),
  test("a single message: ack, then a failure, is acked", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({}, (message) => {
      message.ack()
      return Effect.fail(new Error("after the ack"))
    })
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.quiet()
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilEmpty
  }),
  test("a single message: retry, then success, is retried", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({}, (message) => (message.attempts === 1 ? message.retry() : undefined))
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal(
      "attempts",
      lab.runs.map(({ attempts }) => attempts),
      [1, 2]
    )
  }),
  test("throws, rejections, failures and defects are all failures, of any value", function* (lab) {
    const ways: ReadonlyArray<() => Handler.Result> = [
      () => {
        throw new Error("thrown")
      },
      () => Promise.reject(new Error("rejected")),
      () => Effect.fail({ _tag: "Failed" }),
      () => Effect.die(new Error("defect")),
      () => Effect.runPromise(Effect.fail(undefined)),
      () => Effect.fail("text")
    ]
    yield* lab.send(...ways.map((_, index) => String(index)))
    yield* lab.start({}, (message) => (message.attempts === 1 ? ways[Number(message.id)]!() : undefined))
    yield* lab.untilEvents("Succeeded", ways.length)
    Check.equal("reported failures", lab.eventsOf("AttemptFailed").length, ways.length)
    yield* lab.untilEvents("RetryScheduled", ways.length)
    const told = lab.eventsOf("RetryScheduled").map(({ error }) => `${error?.name}: ${error?.message}`)
    Check.isTrue(
      "each names its error",
      ["Error: thrown", "Error: rejected", "Error: defect"].every((text) => told.includes(text)),
      told
    )
  })
]
