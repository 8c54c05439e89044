/** Redrives in stages with the management interface, on queues that share their delays. */
import { Check } from "@requeue/conformance"
import { Backoff, type Broker, Consumer, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { bytes, ids, outgoing, queueName } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

/** A delay of which no test sees the end. */
const long = 3_600_000

/** Dead letters, as a consumer of the queue would have made them. */
export const bury = (broker: Broker.Service, queue: string, count: number) =>
  broker.publish(
    ids(count).map((id) => ({
      ...outgoing(`${queue}.dlq`, id),
      body: bytes("{}"),
      headers: { "content-type": "application/json" },
      metadata: {
        ...Metadata.make(id, Date.now()),
        deadLetter: {
          queue,
          attempts: 1,
          reason: "retries-exhausted",
          at: Date.now(),
          error: { name: "Error", message: "503" }
        }
      }
    }))
  )

/** Three messages of another queue in the delays of the policy, and three in the levels: all queues share these. */
export const disturb = (broker: Broker.Service, retry: RetryPolicy.RetryPolicy) =>
  Effect.gen(function* () {
    const other = queueName("other")
    yield* Consumer.start(other, { retry }, ({ id }) => Effect.fail(new Error(id)))
    yield* broker.publish(ids(3).map((id) => outgoing(other, id)))
    yield* broker.publish(ids(3).map((id) => outgoing(other, `late-${id}`, { delay: long })))
  })

export const patient = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(long) })

export const cases = [
  test("a redriven letter that waits for its retry has not succeeded, and is told from those of other queues", (adapter, on) =>
    on({ management: adapter.server.broker.managementUrl!, prefix: queueName("shared") }, (broker) =>
      Effect.gen(function* () {
        const queue = queueName("retried")
        yield* disturb(broker, patient)
        yield* Consumer.start(queue, { retry: patient }, ({ id }) =>
          id === "m0" ? Effect.fail(new Error("503")) : Effect.void
        )
        yield* bury(broker, queue, 4)
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        const report = yield* letters.redrive({ stages: [4], wait: "20 seconds" })
        Check.equal(
          "published, succeeded, came back, waiting",
          [report.published, report.succeeded, report.cameBack, report.waiting],
          [4, 3, 0, 1]
        )
      })
    ))
]
