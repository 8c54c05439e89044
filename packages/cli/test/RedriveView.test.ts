/** The words of a redrive's report: every letter is somewhere, and the parts add up. */
import { BrokerError } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import { assert, it } from "vitest"
import * as RedriveView from "../src/RedriveView.ts"

const nothing: DeadLetters.RedriveReport = {
  operation: "op-1",
  published: 0,
  succeeded: undefined,
  cameBack: undefined,
  waiting: undefined,
  repeated: 0,
  unseen: 0,
  stoppedBy: undefined,
  stages: [],
  redriven: 0,
  unremoved: 0,
  refused: 0,
  unconfirmed: 0,
  filtered: 0,
  overRedriveLimit: 0,
  unknownOrigin: 0,
  failures: [],
  queued: 0,
  held: 0
}
const asked = { dryRun: false, maxRedrives: 3, stopAt: undefined }
const text = (report: Partial<DeadLetters.RedriveReport>, dryRun = false) =>
  RedriveView.text({ queue: "q.dlq", report: { ...nothing, ...report } }, { ...asked, dryRun })

const error = new BrokerError.BrokerError({
  broker: "memory",
  operation: "publish",
  queue: "q",
  reason: "Unroutable",
  detail: "no queue"
})

it("says what is where", () => {
  assert.strictEqual(text({}), "q.dlq: redriven 0 of 0")
  assert.strictEqual(text({ redriven: 3, queued: 17 }), "q.dlq: redriven 3 of 20; 17 not reached")
  assert.strictEqual(text({ redriven: 3, queued: 3 }, true), "q.dlq: would redrive 3 of 3")
  assert.strictEqual(
    text({ redriven: 3, filtered: 1, queued: undefined }),
    "q.dlq: redriven 3 of 4; 1 passed over by the filters"
  )
  assert.strictEqual(
    text({ redriven: 3, queued: 0, held: 2 }),
    "q.dlq: redriven 3 of 3; 2 more held by another reader, run it again when that has ended"
  )
  assert.strictEqual(text({ held: undefined }), "q.dlq: redriven 0 of 0; another reader may hold more")
  const parts = {
    redriven: 1,
    unremoved: 2,
    refused: 3,
    unconfirmed: 4,
    filtered: 5,
    overRedriveLimit: 6,
    unknownOrigin: 7
  }
  assert.strictEqual(
    text({ ...parts, queued: 31 }),
    "q.dlq: redriven 1 of 32; 5 passed over by the filters; 6 stopped by --max-redrives 3; 7 of unknown origin, give --to; " +
      "3 refused by the broker; 2 published and not removed, so they are in both queues; 8 not reached; " +
      "of 4, one more copy may exist for each publish without an answer"
  )
})

it("says how to go on after an interruption, in stages or not", () => {
  assert.strictEqual(
    text({ redriven: 3, queued: 17, stoppedBy: "abort" }),
    "q.dlq: redriven 3 of 20; 17 not reached\n  To go on, run the same command again"
  )
})

it("names ten letters that failed, and all in JSON", () => {
  const failures = Array.from({ length: 12 }, (_, n) => ({
    id: `${n}`,
    isPublished: n === 1,
    error: n === 1 ? undefined : error
  }))
  const report = { ...nothing, refused: 11, unremoved: 1, failures, queued: 12 }
  const lines = text(report).split("\n")
  assert.strictEqual(lines.length, 12)
  assert.deepStrictEqual(lines.slice(1, 3), [
    "  0: refused: memory: publish on queue q: Unroutable: no queue",
    "  1: in both queues: the broker gave no answer"
  ])
  assert.strictEqual(lines.at(-1), "  and 2 more, see --json")
  const json = RedriveView.toJson({ queue: "q.dlq", report })
  assert.deepStrictEqual(json.failures.slice(0, 2), [
    { id: "0", isPublished: false, reason: "Unroutable", message: error.message },
    { id: "1", isPublished: true, reason: null, message: null }
  ])
  assert.strictEqual(json.failures.length, 12)
  assert.isTrue(RedriveView.isBad({ queue: "q.dlq", report }))
})

const staged = (report: Partial<DeadLetters.RedriveReport>) =>
  RedriveView.text({ queue: "q.dlq", report: { ...nothing, ...report } }, { ...asked, stopAt: 0.1 })

it("tells what became of each stage, and why there were no more", () => {
  const stages: DeadLetters.RedriveReport["stages"] = [
    { size: 1, published: 1, succeeded: 1, cameBack: 0, waiting: 0, unseen: 0 },
    { size: 10, published: 10, succeeded: 5, cameBack: 2, waiting: 3, unseen: 0 }
  ]
  const report = { redriven: 11, queued: 89, published: 11, succeeded: 6, cameBack: 2, waiting: 3, stages }
  const told = [
    "q.dlq: redriven 11 of 100; 89 not reached",
    "  stage 1: 1 published, 1 succeeded, 0 came back, 0 still queued",
    "  stage 2: 10 published, 5 succeeded, 2 came back, 3 still queued"
  ]
  assert.deepStrictEqual(staged(report).split("\n"), told)
  assert.deepStrictEqual(staged({ ...report, stoppedBy: "stop-at", unseen: 4 }).split("\n"), [
    ...told,
    "  4 more arrived in the dead-letter queues, too many to browse: they count as come back",
    "  stopped: more than 10% of a stage came back. Fix the cause, and run the same command again; with --operation op-1, it passes over those that came back"
  ])
  assert.deepStrictEqual(
    staged({ ...report, stoppedBy: "abort" })
      .split("\n")
      .slice(2, 3),
    ["  stage 2: 10 published, 5 succeeded, 2 came back, 3 not known yet"]
  )
  assert.strictEqual(
    staged({
      stages: [{ size: undefined, published: 3, succeeded: undefined, cameBack: 1, waiting: undefined, unseen: 0 }]
    }).split("\n")[1],
    "  stage 1: 3 published, 1 came back, it is unknown whether the others still wait: the broker does not count them, or --wait was below 15s"
  )
  assert.isTrue(RedriveView.isBad({ queue: "q.dlq", report: { ...nothing, stoppedBy: "wait" } }))
  assert.isFalse(RedriveView.isBad({ queue: "q.dlq", report: { ...nothing, stoppedBy: "abort" } }))
})

it("shows meanwhile what is known by now, of all stages together", () => {
  const progress = (report: Partial<DeadLetters.RedriveReport>) =>
    RedriveView.progress({ queue: "q.dlq", report: { ...nothing, queued: 12, ...report } }, asked)
  assert.strictEqual(progress({}), "q.dlq: 0 of 12")
  const begun = { size: 1, published: 1, succeeded: undefined, cameBack: undefined, waiting: undefined, unseen: 0 }
  const first = { queued: 11, redriven: 1, published: 1, stages: [begun] }
  assert.strictEqual(progress(first), "q.dlq: 1 of 12, in stage 1; so far 1 published, 0 came back")
  assert.strictEqual(
    progress({ ...first, succeeded: 1, cameBack: 0, waiting: 0 }),
    "q.dlq: 1 of 12, in stage 1; so far 1 published, 1 succeeded, 0 came back, 0 not known yet"
  )
})
