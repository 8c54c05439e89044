/** Batches of which SQS refuses some entries. */
import { type Case, Check, Harness, Port, Workload } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Name } from "../../../src/servers/sqs/AwsError.ts"
import { nameOf, Simulated } from "../harness.ts"

/** Makes the next call of this kind to a queue fail for the entries at these places. */
const refuse = (action: string, queue: string, error: Name, ...places: ReadonlyArray<number>) =>
  Effect.map(Simulated, ({ network }) => {
    network.faults.add({ actions: [action], queues: [nameOf(queue)] }, { _tag: "refusedEntries", error, places })
  })

/** Three deliveries, and a settlement of all of them. Returns the places of the failures, and their reasons. */
const settling = (make: (queue: string) => Settlement.Settlement, faults: (queue: string) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { uniqueQueue } = yield* Harness.Harness
    const broker = yield* Broker.Broker
    const queue = yield* uniqueQueue("batch")
    const now = yield* Clock.currentTimeMillis
    yield* broker.publish(["a", "b", "c"].map((id) => Workload.outgoing(queue, id, { now })))
    const port = yield* Port.open(broker, { queue, credit: 3 })
    const deliveries = yield* port.take(3)
    yield* faults(queue)
    const failures = yield* port.settleAll(deliveries.map((delivery) => ({ delivery, settlement: make(queue) })))
    return failures.map(({ delivery, error }) => [deliveries.indexOf(delivery), error.reason])
  })

const test = (name: string, run: Case.Case["run"]): Case.Case => ({ name, group: "batches", run })

const letter = (queue: string) => Settlement.DeadLetter("permanent", `${queue}.dlq`, { name: "Error", message: "no" })

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "the error of a refused ack is that of its delivery",
    Effect.gen(function* () {
      const failed = yield* settling(
        () => Settlement.Ack,
        (queue) => refuse("DeleteMessageBatch", queue, "KmsAccessDenied", 1)
      )
      Check.equal("failures", failed, [[1, "AccessRefused"]])
    })
  ),
  test(
    "the error of a refused delete is that of its delivery, where copies of others were refused before",
    Effect.gen(function* () {
      const failed = yield* settling(letter, (queue) =>
        Effect.andThen(
          refuse("SendMessageBatch", `${queue}.dlq`, "InvalidMessageContents", 0),
          refuse("DeleteMessageBatch", queue, "KmsAccessDenied", 1)
        )
      )
      Check.equal("failures", failed, [
        [0, "Unsupported"],
        [2, "AccessRefused"]
      ])
    })
  ),
  test(
    "entries that SQS throttles are sent again, and no others",
    Effect.gen(function* () {
      const failed = yield* settling(letter, (queue) =>
        refuse("SendMessageBatch", `${queue}.dlq`, "RequestThrottled", 0, 2)
      )
      Check.equal("failures", failed, [])
    })
  )
]
