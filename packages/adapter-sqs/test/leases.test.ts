/** What an extension reports, by what SQS answers for each message. */
import { type Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import * as Leases from "../src/internal/consume/leases.ts"

const [duration, asked] = [30_000, 10_000]

const extended = (reason: BrokerError.Reason | undefined, answered = asked) => {
  const receipt = { handle: "r", messageId: "m", receivedAt: 0, leaseEnds: duration, leaseError: undefined }
  let now = asked
  const changeVisibility = () =>
    Effect.sync(() => {
      now = answered
      return [reason && new BrokerError.BrokerError({ broker: "sqs", operation: "settle", reason, detail: reason })]
    })
  const calls = { changeVisibility, deleteMessages: () => Effect.succeed([]), idle: Effect.void }
  const extend = Leases.make({ queue: "q", calls, duration, now: () => now })
  const [failure] = Effect.runSync(extend([{ receipt }]))
  return [failure?.fate, receipt.leaseEnds]
}

test.each<[string, BrokerError.Reason | undefined, number, Broker.Fate | undefined, number]>([
  ["extended", undefined, asked, undefined, asked + duration],
  ["throttled: the former lease lasts", "Throttled", asked, "transient", duration],
  ["without an answer: the former lease lasts", "Timeout", asked, "unknown", duration],
  ["forbidden: the former lease lasts", "AccessRefused", asked, "rejected", duration],
  ["of a message that was deleted", "LeaseLost", asked, "lost", duration],
  ["throttled until the lease has ended", "Throttled", duration, "lost", duration]
])("%s", (_, reason, answered, ...expected) => assert.deepStrictEqual(extended(reason, answered), expected))
