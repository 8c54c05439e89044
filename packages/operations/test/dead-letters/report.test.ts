/** The message of an operation that stopped accounts for every letter. */
import { BrokerError } from "@requeue/core"
import { assert, it } from "vitest"
import { DeadLettersStopped, type Report } from "../../src/dead-letters/internal/report.ts"

const cause = new BrokerError.BrokerError({
  broker: "rabbitmq",
  operation: "redrive",
  queue: "q.dlq",
  reason: "ConnectionLost",
  detail: "cut"
})

it.each([
  [{ queued: 4, held: 0 }, "5 letters removed, 4 are still there."],
  [{ queued: 0, held: 4 }, "5 letters removed, 0 are still there, another reader holds 4."],
  [{ queued: 0, held: undefined }, "5 letters removed, 0 are still there, another reader may hold more."],
  [undefined, "5 letters removed."]
] as const)("of %j: %s", (counts, text) => {
  // The message reads these counts only.
  const report = counts as Report | undefined
  const stopped = new DeadLettersStopped({ queue: "q.dlq", operation: "redrive", removed: 5, report, cause })
  assert.isTrue(stopped.message.startsWith(`redrive of q.dlq stopped: ${text} `), stopped.message)
})
