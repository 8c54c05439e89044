/** Cases of messages on classic queues, whose returns the adapter counts: the server reports only that there was one. */
import type { Case } from "@requeue/conformance"
import { Check, Wait } from "@requeue/conformance"
import { type Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { test } from "./Own.ts"

const queue = "orders"

/** Consumes, by default one message at a time; returns the deliveries. */
const subscribe = Effect.fnUntraced(function* ({ subscribe: open }: Broker.Service, credit = 1) {
  const inbox: Array<Delivery.Delivery> = []
  const subscription = yield* open({
    queue,
    retry: RetryPolicy.make(),
    deadLetterQueues: [],
    onDelivery: (delivery) => inbox.push(delivery),
    onReconnect: () => {}
  })
  subscription.credit(credit)
  return { inbox, subscription, attempts: () => inbox.map(({ attempts }) => attempts) }
})

const classic = [{}, { queueType: "classic" }] as const

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a returned message keeps its attempts although the copy that counts them was lost with its connection",
    classic,
    ({ broker, cut, send, server }) =>
      Effect.gen(function* () {
        const { attempts, inbox } = yield* subscribe(broker)
        yield* send(queue, "a")
        yield* Wait.until("the first delivery", () => inbox.length === 1)
        server.faults.arm("lostRequest", ({ about, name }) => name === "publish" && about.endsWith(queue))
        cut()
        yield* Wait.until("the second delivery", () => inbox.length === 2)
        cut()
        yield* Wait.until("the third delivery", () => inbox.length === 3)
        Check.equal("attempts", attempts(), [1, 2, 3])
      })
  ),
  test(
    "a returned message keeps its attempts in a process that has settled it before",
    classic,
    ({ another, broker, send, server }) =>
      Effect.gen(function* () {
        const one = yield* subscribe(broker)
        yield* send(queue, "a")
        yield* Wait.until("the first delivery", () => one.inbox.length === 1)
        const other = yield* subscribe((yield* another).broker)
        server.faults.arm("lostRequest", ({ name }) => name === "settle")
        yield* one.subscription.settle([{ delivery: one.inbox[0]!, settlement: Settlement.Ack }])
        yield* Wait.until("the redelivery", () => server.vhost.queues.get(queue)?.counts.ready === 0)
        other.subscription.credit(0)
        yield* Wait.until("the second delivery", () => one.inbox.length === 2)
        Check.equal("attempts", one.attempts(), [1, 2])
      })
  ),
  test(
    "a returned message is not delivered again once the copy that counts it was settled, though that copy's confirmation is late",
    classic,
    ({ broker, cut, send, server }) =>
      Effect.gen(function* () {
        const { attempts, inbox, subscription } = yield* subscribe(broker, 2)
        yield* send(queue, "a")
        yield* Wait.until("the first delivery", () => inbox.length === 1)
        server.faults.arm("lateAnswer", ({ about, name }) => name === "publish" && about.endsWith(queue))
        cut()
        yield* Wait.until("the copy", () => inbox.length === 2)
        yield* subscription.settle([{ delivery: inbox[1]!, settlement: Settlement.Ack }])
        yield* Effect.sleep("1 minute")
        const { ready, unsettled } = server.vhost.queues.get(queue)!.counts
        Check.equal("messages", [ready, unsettled], [0, 0])
        Check.equal("attempts", attempts(), [1, 2])
      })
  )
]
