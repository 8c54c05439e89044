/** The dead letters of a status: all of them are counted, or a remark says which are not. */
import { type Broker, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import * as QueueStatus from "../../src/status/QueueStatus.ts"

const none: Broker.Counts = { ready: 0, inFlight: 0, delayed: 0 }

/** The status of `orders`, by a broker with these counts. */
const statusOf = (counts: Readonly<Record<string, Partial<Broker.Counts>>>) =>
  Effect.runPromise(
    QueueStatus.of(
      { admin: { counts: (queue) => Effect.succeed({ ...none, ...counts[queue] }) } },
      {
        queue: "orders",
        retry: RetryPolicy.make({ deadLetter: { queue: "orders.dlq", routes: { undecodable: "broken" } } })
      }
    )
  )

const numberOf = async (counts: Parameters<typeof statusOf>[0]) => {
  const status = await statusOf(counts)
  return [QueueStatus.allDeadOf(status), QueueStatus.remarksOf(status).dead]
}

it("counts the dead letters that a reader holds", async () => {
  assert.deepStrictEqual(await numberOf({ "orders.dlq": { ready: 451, inFlight: 200 } }), [651, undefined])
})

it("has a remark where a reader holds letters that the broker does not count", async () => {
  const held = { ready: 451, inFlight: undefined, isRead: true }
  assert.deepStrictEqual(await numberOf({ "orders.dlq": held }), [
    451,
    "a reader, such as a redrive, is at work; the broker does not count the letters that it holds"
  ])
  assert.deepStrictEqual(await numberOf({ "orders.dlq": { ...held, isRead: false } }), [451, undefined])
})

it("tells missing dead-letter queues from empty ones", async () => {
  const { dead } = await statusOf({ "orders.dlq": { ready: 3 }, broken: { isMissing: true } })
  assert.deepStrictEqual(
    dead.map(({ count, isMissing, queue }) => [queue, count, isMissing]),
    [
      ["orders.dlq", 3, false],
      ["broken", 0, true]
    ]
  )
})
