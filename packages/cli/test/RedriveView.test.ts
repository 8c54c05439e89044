/** The words of a redrive's report: every letter is somewhere, and the parts add up. */
import { BrokerError, type DeadLetters } from "@requeue/core"
import { assert, it } from "vitest"
import * as RedriveView from "../src/RedriveView.ts"

const nothing: DeadLetters.RedriveReport = {
  redriven: 0,
  unremoved: 0,
  refused: 0,
  unconfirmed: 0,
  filtered: 0,
  guarded: 0,
  homeless: 0,
  failures: [],
  queued: 0,
  held: 0
}
const asked = { dryRun: false, maxRedrives: 3 }
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
    "q.dlq: redriven 3 of 3; 2 more with another reader, run it again when that has ended"
  )
  assert.strictEqual(text({ held: undefined }), "q.dlq: redriven 0 of 0; another reader may have more")
  const parts = { redriven: 1, unremoved: 2, refused: 3, unconfirmed: 4, filtered: 5, guarded: 6, homeless: 7 }
  assert.strictEqual(
    text({ ...parts, queued: 31 }),
    "q.dlq: redriven 1 of 32; 5 passed over by the filters; 6 stopped by --max-redrives 3; 7 of unknown origin, give --to; " +
      "3 refused by the broker; 2 published and not removed, so that they are in both queues; 8 not reached; " +
      "of 4, one copy more may exist"
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
